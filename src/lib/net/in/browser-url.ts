/** The address of a request as the browser sees it. */

/** A proxy in front may terminate TLS. */
export function browserUrl(request: Request): URL {
  const url = new URL(request.url);
  if (saysTls(request.headers)) url.protocol = "https:";
  return url;
}

/** Whether a proxy says that the browser used TLS. */
export const saysTls = (headers: Headers): boolean => /^https\b/i.test(headers.get("x-forwarded-proto") ?? "");
