/** The address of a request as the browser sees it. */

/** A proxy in front may terminate TLS. */
export function browserUrl(request: Request): URL {
  const url = new URL(request.url);
  if (/^https\b/i.test(request.headers.get("x-forwarded-proto") ?? "")) url.protocol = "https:";
  return url;
}
