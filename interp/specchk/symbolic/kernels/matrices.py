"""Kernels for closed difference-bound matrices, row by row in an array of 64-bit words.

They are translated as written (`codegen.functions`); the tests have the same on lists.  A zone is one array:

    count of classes, count of places, (class, distance) of each place, the number 0 first, bounds row by row

A bound is at most `CAP`, or is `FREE`, so that a sum of three fits 64 bits.  A kernel that would have a
larger number refuses: its result is `REFUSED`.
"""

from __future__ import annotations

from specchk.codegen.arrays import Words

FREE = 1 << 60  # as in `meaning.paths`
CAP = 1 << 50
REFUSED = -1
HEAD = 2  # words of a zone before its places


def fits(bound: int) -> int:
    """Whether kernels can handle a bound."""
    return bound >= -CAP and bound <= CAP


def assume(rows: Words, at: int, size: int, i: int, j: int, bound: int) -> int:
    """Add `x_i - x_j <= bound`, consistent with the closed matrix, and all consequences."""
    # One pass is enough: the matrix is closed, and no shortest path uses the new bound twice, as there is no
    # negative cycle.
    onward = at + j * size
    row = at
    for _ in range(size):
        near = rows[row + i]
        if near < FREE:
            near += bound
            for b in range(size):
                far = rows[onward + b]
                if far < FREE and near + far < rows[row + b]:
                    rows[row + b] = near + far
                    if not fits(near + far):
                        return REFUSED
        row += size
    return 0


def close(rows: Words, at: int, size: int) -> int:
    """The least matrix with the same solutions (Floyd and Warshall)."""
    for via in range(size):
        onward = at + via * size
        row = at
        for _ in range(size):
            near = rows[row + via]
            if near < FREE:
                for j in range(size):
                    far = rows[onward + j]
                    if far < FREE and near + far < rows[row + j]:
                        rows[row + j] = near + far
                        if not fits(near + far):
                            return REFUSED
            row += size
    return 0


def copy(source: Words, first: int, target: Words, to: int, count: int) -> int:
    """Copy this many words."""
    for word in range(count):
        target[to + word] = source[first + word]
    return 0


def forget(rows: Words, at: int, size: int, upper: int, lower: int) -> int:
    """Remove the bounds beyond a reach from a closed matrix."""
    # A bound above the reach decides no comparison, so it becomes free; one below it is raised to it.  Zones
    # that differ only in such bounds become one, so the search ends, as with clocks (Bengtsson and Yi, 2004).
    # With differences compared, no such abstraction is exact (Bouyer, 2003): that is why no finding in zones
    # is accepted before `concrete` has real offsets for it.
    is_changed = 0
    row = at
    for i in range(size):
        for j in range(size):
            bound = rows[row + j]
            if bound > upper:
                if bound < FREE:
                    is_changed = 1
                rows[row + j] = FREE
            elif bound < -lower:
                rows[row + j] = -lower
                is_changed = 1
        rows[row + i] = 0
        row += size
    # Closed again, so that equal sets have equal matrices; a bound may then be below `-lower` again, but
    # there are no more results than matrices before closing.
    if is_changed:
        return close(rows, at, size)
    return 0


def canonical(
    rows: Words, at: int, size: int, places: Words, place: int, count: int, out: Words, to: int
) -> int:
    """The zone of a closed matrix; `places` has the symbol of each place.  Returns its number of words.

    Its working memory is in `rows` behind the matrix: the class and the distance of each symbol, and the
    first symbol of each class.
    """
    # Symbols at a known distance from each other are one class, named by the first of them: a zone has one
    # form, whatever symbols it was built from.
    of = at + size * size
    first = of + 2 * size
    kept = 0
    for i in range(size):
        number = 0
        while number < kept:
            there = rows[first + number]
            known = rows[at + i * size + there]
            if known < FREE and known == -rows[at + there * size + i]:
                break
            number += 1
        rows[of + 2 * i] = number
        if number == kept:
            rows[first + kept] = i
            kept += 1
            rows[of + 2 * i + 1] = 0
        else:
            rows[of + 2 * i + 1] = rows[at + i * size + rows[first + number]]
    out[to] = kept
    out[to + 1] = count
    word = to + HEAD
    for n in range(count):
        symbol = places[place + n]
        out[word] = rows[of + 2 * symbol]
        out[word + 1] = rows[of + 2 * symbol + 1]
        word += 2
    for a in range(kept):
        row = at + rows[first + a] * size
        for b in range(kept):
            out[word] = rows[row + rows[first + b]]
            word += 1
    return word - to


def image(
    rows: Words, at: int, size: int, classes: int, steps: Words, step: int, count: int,
    upper: int, lower: int, work: Words, out: Words, to: int,
) -> int:  # fmt: skip
    """The zone after a step; `steps` has the symbol and the distance of each place.

    `classes`, also in `rows`, are those of the symbols before the step.  `work` holds the symbols of the
    places, the distinct ones as pairs, and a matrix of these.
    """
    pairs = count
    distinct = 0
    for n in range(count):
        symbol = steps[step + 2 * n]
        x = rows[classes + 2 * symbol]
        d = rows[classes + 2 * symbol + 1] + steps[step + 2 * n + 1]
        if not fits(d):
            return REFUSED
        known = 0
        while known < distinct:
            if work[pairs + 2 * known] == x and work[pairs + 2 * known + 1] == d:
                break
            known += 1
        if known == distinct:
            work[pairs + 2 * known] = x
            work[pairs + 2 * known + 1] = d
            distinct += 1
        work[n] = known
    matrix = pairs + 2 * distinct
    word = matrix
    for a in range(distinct):
        row = at + work[pairs + 2 * a] * size
        d = work[pairs + 2 * a + 1]
        for b in range(distinct):
            bound = rows[row + work[pairs + 2 * b]]
            if bound < FREE:
                bound += d - work[pairs + 2 * b + 1]
                if not fits(bound):
                    return REFUSED
            work[word] = bound
            word += 1
    if forget(work, matrix, distinct, upper, lower) == REFUSED:
        return REFUSED
    return canonical(work, matrix, distinct, work, 0, count, out, to)


def is_less(words: Words, one: int, other: int, count: int) -> int:
    """Whether words precede as many others in order."""
    for n in range(count):
        if words[one + n] != words[other + n]:
            return words[one + n] < words[other + n]
    return 0


def least_image(
    rows: Words,
    at: int,
    size: int,
    classes: int,
    steps: Words,
    upper: int,
    lower: int,
    work: Words,
    out: Words,
) -> int:
    """The least zone after a step among its renamings, written to `out` from 0; returns its words."""
    images = steps[0]
    count = steps[1]
    best = 0
    for n in range(images):
        length = image(
            rows, at, size, classes, steps, 2 + n * 2 * count, count, upper, lower, work, out, best
        )
        if length == REFUSED:
            return REFUSED
        if n == 0:
            best = length
        elif is_less(out, best + HEAD, HEAD, length - HEAD):
            # Zones with the same classes have as many words.
            # The best one is kept at 0, and the next one is written behind it.
            copy(out, best, out, 0, length)
            best = length
    return best


def pair(one: Words, other: Words, work: Words, first: int, out: Words) -> int:
    """Assign one symbol to all places at the same distance in two zones; returns the number of symbols."""
    distinct = 0
    for n in range(one[1]):
        c = one[HEAD + 2 * n]
        d = one[HEAD + 2 * n + 1]
        e = other[HEAD + 2 * n]
        f = other[HEAD + 2 * n + 1]
        if not fits(d) or not fits(f):
            return REFUSED
        known = 0
        while known < distinct:
            at = first + 4 * known
            if work[at] == c and work[at + 2] == e and work[at + 1] - work[at + 3] == d - f:
                break
            known += 1
        at = first + 4 * known
        if known == distinct:
            work[at] = c
            work[at + 1] = d
            work[at + 2] = e
            work[at + 3] = f
            distinct += 1
        out[HEAD + 2 * n] = known
        out[HEAD + 2 * n + 1] = d - work[at + 1]
    return distinct


def join(one: Words, other: Words, work: Words, out: Words) -> int:
    """The least zone that contains two of a shape; returns its words, 0 if `one` contains the other."""
    count = one[1]
    bounds = HEAD + 2 * count
    size_one = one[0]
    size_other = other[0]
    first = 0
    distinct = pair(one, other, work, first, out)
    if distinct == REFUSED:
        return REFUSED
    # Some places have a fixed distance in `one`, but not in both: the hull is larger in any case.
    is_larger = 1 if distinct > size_one else 0
    word = bounds
    for a in range(distinct):
        at = first + 4 * a
        row_one = bounds + work[at] * size_one
        row_other = bounds + work[at + 2] * size_other
        for b in range(distinct):
            to = first + 4 * b
            known = one[row_one + work[to]]
            if known < FREE:
                if not fits(known):
                    return REFUSED
                known += work[at + 1] - work[to + 1]
                far = other[row_other + work[to + 2]]
                if far >= FREE:
                    known = FREE
                    is_larger = 1
                else:
                    if not fits(far):
                        return REFUSED
                    far += work[at + 3] - work[to + 3]
                    if far > known:
                        known = far
                        is_larger = 1
                    if not fits(known):
                        return REFUSED
            out[word] = known
            word += 1
    out[0] = distinct
    out[1] = count
    if is_larger:
        return word
    return 0


def cut(zone: Words, i: int, j: int, bound: int, work: Words, places: Words, out: Words) -> int:
    """The part of a zone with `y_i - y_j <= bound` on its classes, not empty; returns its words."""
    size = zone[0]
    count = zone[1]
    bounds = HEAD + 2 * count
    for word in range(size * size):
        number = zone[bounds + word]
        if not fits(number) and number != FREE:
            return REFUSED
        work[word] = number
    if not fits(bound) or assume(work, 0, size, i, j, bound) == REFUSED:
        return REFUSED
    for n in range(count):
        places[n] = zone[HEAD + 2 * n]
    words = canonical(work, 0, size, places, 0, count, out, 0)
    # Each place is at a distance from its old class, which is now at one from its new class.
    for n in range(count):
        out[HEAD + 2 * n + 1] += zone[HEAD + 2 * n + 1]
    return words
