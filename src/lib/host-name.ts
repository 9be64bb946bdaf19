/** The forms of host names and origins, shared by the guard and the config. */

const label = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?";

/**
 * A host name in lower case without port, as a part of a regular expression. Underscores are allowed: a Host header may contain
 * any `reg-name` (RFC 3986 3.2.2), and Docker Compose calls containers `project_service_1`.
 */
export const hostNameSource = `${label}(?:\\.${label})*`;

/** Characters, as DNS limits it (RFC 1035 2.3.4). */
export const maxHostName = 253;

/** 0 to 255. */
const octet = String.raw`(?:25[0-5]|2[0-4]\d|1?\d?\d)`;
/** An IPv4 address of this machine, as a part of a regular expression. */
export const loopbackSource = `127(?:\\.${octet}){3}`;
const loopbackName = new RegExp(`^(?:localhost|\\[::1\\]|${loopbackSource})$`);

/** `localhost`, 127.0.0.0/8 or `[::1]`. @param host In lower case and without a port, as `URL.hostname` writes it. */
export const isLoopbackName = (host: string): boolean => loopbackName.test(host);

/** Characters. */
export const maxOrigin = 256;

/** A browser's Origin, letter for letter: `http://host:port` without a default port, or an extension's or app's own scheme. */
export function isOrigin(text: string): boolean {
  if (text.length > maxOrigin) return false;
  if (/^https?:/i.test(text)) return URL.parse(text)?.origin === text && !text.includes("*");
  return /^[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9._-]+$/.test(text);
}
