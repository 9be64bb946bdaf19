/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Numbers and times as a person reads them. What nobody knows is said to be unknown, and never shown as 0. */
export const Unknown = () => <span class="unknown">unknown</span>;

/** Whole numbers: `12,345`. */
export const Count = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <Unknown /> : <span class="num">{formatCount(of)}</span>;

/** Tokens, with the exact number behind it: `12.3k`. */
export const Tokens = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? (
    <Unknown />
  ) : (
    <span class="num" title={of >= 10_000 ? `${formatCount(of)} tokens` : undefined}>
      {compact(of)}
    </span>
  );

/** Billionths of an AI credit, as credits. */
export const Credits = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <Unknown /> : <span class="num">{formatCredits(of)}</span>;

export const Premium = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <Unknown /> : <span class="num">{formatUnits(of)}</span>;

export const Duration = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <Unknown /> : <span class="num">{duration(of)}</span>;

/** 0 … 1 */
export const Percent = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? <Unknown /> : <span class="num">{percent(of)}</span>;

/** A moment by this machine's clock: the time alone if it is today. */
export const Moment = ({ at, now, seconds }: { at: number | null | undefined; now: number; seconds?: boolean }) =>
  at === null || at === undefined || !Number.isFinite(at) ? (
    <Unknown />
  ) : (
    <time class="num" datetime={new Date(at).toISOString()} title={fullTime(at)}>
      {moment(at, now, seconds)}
    </time>
  );

/** How long ago: `3 min ago`. */
export const Ago = ({ at, now, never = "never" }: { at: number | null | undefined; now: number; never?: string }) =>
  at === null || at === undefined ? (
    <span class="soft">{never}</span>
  ) : (
    <time class="num" datetime={new Date(at).toISOString()} title={fullTime(at)}>
      {ago(at, now)}
    </time>
  );

/** A value somebody else chose: one line, cut where it is too long, with its whole on hover. */
export const Value = ({ of, max = 60 }: { of: string | null | undefined; max?: number }) => {
  if (of === null || of === undefined) return <Unknown />;
  if (of === "") return <span class="soft">empty</span>;
  const shown = shorten(of, max);
  return (
    <bdi class="value" title={shown === of ? undefined : shorten(of, 400)}>
      {shown}
    </bdi>
  );
};

/** A sentence of ours for a person; what stands in backquotes is to be typed. */
export const Sentence = ({ of }: { of: string }) => (
  <>{of.split(/`([^`]+)`/).map((part, at) => (at % 2 === 0 ? part : <code>{part}</code>))}</>
);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const formatCount = (value: number) => whole.format(value);

export function compact(value: number): string {
  const sign = value < 0 ? "-" : "";
  const size = Math.abs(value);
  if (size < 10_000) return sign + formatCount(Math.round(size));
  const [unit, name] = size < 999_500 ? [1e3, "k"] : size < 999_500_000 ? [1e6, "M"] : ([1e9, "B"] as const);
  return `${sign}${significant(size / unit)}${name}`;
}

export const formatCredits = (nano: number) => significant(nano / 1e9);
/** One credit is a hundredth of a dollar. */
export function dollars(nano: number): string {
  const amount = nano / 1e11;
  return `$${amount >= 100 ? formatCount(amount) : amount >= 0.1 || amount === 0 ? amount.toFixed(2) : significant(amount)}`;
}

export const formatUnits = (value: number) => significant(value);
export const percent = (share: number) => {
  const value = share * 100;
  // 99.96 % is not all of them.
  if (value > 99.9 && value < 100) return "99.9 %";
  return `${value < 10 && value > 0 ? value.toFixed(1) : Math.floor(value)} %`;
};

/** Three digits that count: 0.0421 · 4.21 · 42.1 · 4,210. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return formatCount(value);
  const digits = size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.001 ? 3 : 6;
  return value.toFixed(digits).replace(/\.?0+$/, "");
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

/** In one unit, for what lies ahead or behind: `9 days`, `5 hours`. */
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

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const two = (part: number) => String(part).padStart(2, "0");

export function clock(at: number, seconds = false): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
}

/** `21 Nov`, with the year if it is another one. */
export function day(at: number, now: number): string {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${months[date.getMonth()]}${year}`;
}

export function moment(at: number, now: number, seconds = false): string {
  const today = new Date(at).toDateString() === new Date(now).toDateString();
  return today ? clock(at, seconds) : `${day(at, now)}, ${clock(at, seconds)}`;
}

const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
const fullTime = (at: number) => full.format(at);

/** Bytes. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [unit, name] = bytes < 1024 ** 2 ? [1024, "kB"] : bytes < 1024 ** 3 ? [1024 ** 2, "MB"] : [1024 ** 3, "GB"];
  return `${significant(bytes / Number(unit))} ${name}`;
}

/** Without what turns the direction of writing or takes no room, and no longer than that. */
export function shorten(text: string, max: number): string {
  const visible = text.replace(invisible, "�");
  return visible.length <= max ? visible : `${visible.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164]/gu;

export const plural = (number: number, word: string, more = `${word}s`) =>
  `${formatCount(number)} ${number === 1 ? word : more}`;
