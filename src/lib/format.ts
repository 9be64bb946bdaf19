/** Numbers, sizes, dates and durations as text for people: pages, command line and messages. */
import { beginningOf } from "./beginning";
import { lazy } from "./lazy";

/** Milliseconds. */
export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** Making one loads the tables of all languages. */
const whole = lazy(() => new Intl.NumberFormat("en", { maximumFractionDigits: 0 }));

export const formatCount = (value: number) => whole().format(value);

export function compact(value: number): string {
  const sign = value < 0 ? "-" : "";
  const size = Math.abs(value);
  if (size < 10_000) return sign + formatCount(Math.round(size));
  const [unit, name] = size < 999_500 ? [1e3, "k"] : size < 999_500_000 ? [1e6, "M"] : ([1e9, "B"] as const);
  return `${sign}${significant(size / unit)}${name}`;
}

/** Billionths of what is counted: `4.21`. */
export const formatAmount = (billionths: number) => significant(billionths / 1e9);
/** Billionths of an AI credit, in dollars: one credit is one cent. */
export function dollars(nano: number): string {
  const amount = nano / 1e11;
  return `$${amount >= 100 ? formatCount(amount) : amount >= 0.1 || amount === 0 ? amount.toFixed(2) : significant(amount)}`;
}

/** What quotas are counted in. */
export const unitNames = {
  premium: "premium requests",
  credits: "AI credits",
  chat: "chat messages",
  unknown: "of its quota",
};

/** GitHub's words for the plans. */
export const planNames: Record<string, string> = {
  free: "Copilot Free",
  student: "Copilot Student",
  individual: "Copilot Pro",
  individual_pro: "Copilot Pro+",
  individual_max: "Copilot Max", // VS Code's client, 2026-09
  business: "Copilot Business",
  enterprise: "Copilot Enterprise",
  organization: "billed to the organization",
};

/** What a model costs, as it is listed. */
export interface ListedPrice {
  premium: boolean;
  /** Premium requests for one that a person makes. */
  units?: number | null;
  /** AI credits per `per` tokens. */
  tokens?: { input: number | null; output: number | null; per: number } | null;
}

/** Of the numbers of a price for tokens. */
export const priceUnit = "credits per M in/out";

/** `free`, `1 premium request`, `300/1,500 credits per M in/out`, or `unknown`. @param brief `300/1,500`, without the unit. */
export function priceInWords({ premium, units = null, tokens = null }: ListedPrice, brief = false): string {
  if (units === null && tokens === null) return "unknown";
  if (!premium && (tokens === null || (tokens.input ?? 0) + (tokens.output ?? 0) === 0)) return "free";
  if (tokens === null || (premium && units !== null))
    return `${significant(units!)} premium ${units === 1 ? "request" : "requests"}`;
  const perMillion = (credits: number | null) => (credits === null ? "?" : significant((credits * 1e6) / tokens.per));
  return `${perMillion(tokens.input)}/${perMillion(tokens.output)}${brief ? "" : ` ${priceUnit}`}`;
}

/** A share, rounded: `71.9%` is `72%`, and below ten there is one decimal. Only exactly 1 is `100%`, and only 0 is `0%`. */
export const percent = (share: number) => {
  const value = share * 100;
  if (value >= 99.5 && value < 100) return `${Math.min(99.9, Number(value.toFixed(1)))}%`;
  return `${value > 0 && value < 9.95 ? Math.max(0.1, value).toFixed(1) : Math.round(value)}%`;
};

/** Three significant digits: 0.0421 · 4.21 · 42.1 · 4,210. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return formatCount(value);
  const digits = size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.001 ? 3 : 6;
  return String(Number(value.toFixed(digits)));
}

export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

/** A duration in one unit: `9 days`, `5 hours`. */
export function span(ms: number): string {
  const minutes = Math.max(0, ms) / 60_000;
  const [value, unit] =
    minutes < 1
      ? [0, ""]
      : minutes < 90
        ? [minutes, "minute"]
        : minutes < 2_160
          ? [minutes / 60, "hour"]
          : [minutes / 1_440, "day"];
  const rounded = Math.round(value);
  return unit === "" ? "less than a minute" : `${rounded} ${unit}${rounded === 1 ? "" : "s"}`;
}

export const ago = (at: number, now: number) => (now - at < 45_000 ? "just now" : `${span(now - at)} ago`);

/** A formatter for dates keeps the time zone it was made in, and a new one for each date costs more than the rest of a page. */
const months = "January February March April May June July August September October November December".split(" ");
const monthOf = (date: Date): string => months[date.getMonth()]!;

const two = (value: number) => String(value).padStart(2, "0");

/** In this machine's time zone: `14:05`, or `14:05:09`. */
export function clock(at: number, seconds = false): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
}

/** `21 Nov`, with the year if it is not this year. */
export function day(at: number, now: number): string {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${monthOf(date).slice(0, 3)}${year}`;
}

export function moment(at: number, now: number, seconds = false): string {
  const today = new Date(at).toDateString() === new Date(now).toDateString();
  return today ? clock(at, seconds) : `${day(at, now)}, ${clock(at, seconds)}`;
}

const full = lazy(() => new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" }));
export const fullTime = (at: number) => full().format(at);

/** A UTC offset as `+01:00`, of this machine at that time. */
export function utcOffset(date: Date): string {
  const minutes = -date.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** The day in UTC: `2026-11-21`. */
export const utcDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The day in this machine's time zone, as ISO 8601 writes it: `2026-11-21`. */
export function isoDay(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The beginning of the day of a time in a zone such as `Europe/Berlin`. Both in milliseconds. */
export const startOfDayIn = (timeZone: string, at: number): number =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).startOfDay().epochMilliseconds;

/**
 * A time with its zone, for messages: `14:05 CET` if it is today, with seconds within the next hour; otherwise
 * `1 June, 00:00 CET`. A zone without a common name is written as `GMT+8`.
 */
export function zonedTime(at: number, now: number): string {
  const date = new Date(at);
  const names = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
  const zone = names.formatToParts(date).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const time = `${clock(at, at - now < hourMs)} ${zone}`;
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.getDate()} ${monthOf(date)}, ${time}`;
}

/** Bytes. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [unit, name] = bytes < 1024 ** 2 ? [1024, "KiB"] : bytes < 1024 ** 3 ? [1024 ** 2, "MiB"] : [1024 ** 3, "GiB"];
  return `${significant(bytes / Number(unit))} ${name}`;
}

/** At most `max` characters, with invisible and direction-changing characters replaced. */
export function shorten(text: string, max: number): string {
  const visible = text.replace(invisible, "�");
  return visible.length <= max ? visible : `${beginningOf(visible, max - 1)}…`;
}

const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164]/gu;

export const plural = (number: number, word: string, more = `${word}s`) =>
  `${formatCount(number)} ${number === 1 ? word : more}`;

/** Unless a sentence has its end already, in whatever words it is. */
export const withFullStop = (sentence: string): string =>
  /[.!?…:]["'”’)\]]?$/.test(sentence) ? sentence : `${sentence}.`;

export const withoutFullStop = (sentence: string): string => sentence.replace(/\.$/, "");
