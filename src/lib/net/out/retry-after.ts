/**
 * Seconds, at least 0, until a service wants to be asked again: from a number, or from a date by the clock of the service,
 * because this machine's may be wrong. Undefined if the headers name no valid time.
 * @param now Unix ms, for an answer without a date of its own.
 */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  // OpenAI's SDKs read this header too, and prefer it.
  const milliseconds = headers.get("retry-after-ms") ?? "";
  if (isNumber.test(milliseconds)) return Math.ceil(Number(milliseconds) / 1000);
  const value = headers.get("retry-after") ?? headers.get("x-ratelimit-user-retry-after") ?? "";
  const date = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  const answeredAt = Date.parse(headers.get("date") ?? "") || now;
  const seconds = isNumber.test(value) ? Number(value) : (date - answeredAt) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

const isNumber = /^\d+(?:\.\d+)?$/;
