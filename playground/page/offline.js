"use strict";
// Keeps the files of one build, so that the playground works without a network once it has been loaded.  A newer
// build is used after all pages of this one are closed: files of two builds are never mixed.
const KEPT = "specchk-{BUILD}";

self.addEventListener("activate", (event) => event.waitUntil((async () => {
  const others = (await caches.keys()).filter((name) => name.startsWith("specchk-") && name !== KEPT);
  await Promise.all(others.map((name) => caches.delete(name)));
  await clients.claim();
})()));

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || !event.request.url.startsWith(registration.scope)) return;
  event.respondWith((async () => {
    const kept = await caches.open(KEPT);
    const known = await kept.match(event.request, { ignoreSearch: true });
    if (known) return known;
    const answer = await fetch(event.request);
    if (answer.ok) await kept.put(event.request, answer.clone());
    return answer;
  })());
});
