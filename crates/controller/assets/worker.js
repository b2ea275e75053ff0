// Keeps the files of this page, so that it opens while the controller is away. Answers of the API are never kept.

const CACHE = "slicewise-dashboard";

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const isFile = url.origin === location.origin && (url.pathname === "/" || /^\/assets\/[a-z_]+\.(js|css|svg)$/.test(url.pathname));
  if (event.request.method === "GET" && isFile) event.respondWith(fetched(event.request));
});

/** The controller's file; the kept one if there is no answer. */
async function fetched(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}
