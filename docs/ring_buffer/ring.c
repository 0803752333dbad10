// A ring buffer, and behind `main` specchk's protocol: one JSON object a line, each answered with its id.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 3, LONGEST_LINE = 4096 };
static int ring[CAPACITY], head, count;

static const char *push(int item) {
    if (count == CAPACITY) return "full";
    ring[(head + count) % CAPACITY] = item;
    count += 1;
    return NULL;
}

static const char *pop(void) {
    if (count == 0) return "empty";
    head = (head + 1) % CAPACITY;
    count -= 1;
    return NULL;
}

// The text behind "name": in a request, which specchk writes without blanks; NULL without such a member.
static const char *member(const char *line, const char *name) {
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(line, key);
    return found == NULL ? NULL : found + strlen(key);
}

static void answer(const char *line) {
    const char *step = member(line, "do"), *refusal = NULL;
    if (member(line, "hello") != NULL) {
        printf("\"ready\":{\"protocol\":1,\"can\":[\"reset\"]}");
    } else if (step != NULL) {
        refusal = strncmp(step, "\"push\"", 6) == 0 ? push(atoi(member(line, "item"))) : pop();
        printf(refusal == NULL ? "\"accepted\":null" : "\"refused\":\"%s\"", refusal);
    } else if (member(line, "observe") != NULL) {
        printf("\"state\":{\"items\":[");
        for (int i = 0; i < count; i++) printf(i == 0 ? "%d" : ",%d", ring[(head + i) % CAPACITY]);
        printf("]}");
    } else {
        head = count = 0;
        printf("\"ok\":true");
    }
}

int main(void) {
    static char line[LONGEST_LINE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("{\"id\":%d,", atoi(member(line, "id")));
        answer(line);
        printf("}\n");
        fflush(stdout);
        if (member(line, "quit") != NULL) return 0;
    }
    return 0;
}
