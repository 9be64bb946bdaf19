/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Components for numbers and times. A missing value is shown as "unknown", never as 0. */
import {
  ago,
  compact,
  duration,
  formatAmount,
  formatCount,
  fullTime,
  moment,
  percent,
  shorten,
} from "../../lib/format";
import { type Costs, costInWords, marked } from "../../lib/money";

export const Unknown = () => <span class="unknown">unknown</span>;

/** A number in words. */
const known =
  (words: (value: number) => string) =>
  ({ of }: { of: number | null | undefined }) =>
    of === null || of === undefined ? <Unknown /> : <span class="num">{words(of)}</span>;

/** Whole numbers: `12,345`. */
export const Count = known(formatCount);

/** Tokens, with the exact number behind it: `12.3k`. */
export const Tokens = ({ of }: { of: number | null | undefined }) =>
  of === null || of === undefined ? (
    <Unknown />
  ) : (
    <span class="num" title={of >= 10_000 ? `${formatCount(of)} tokens` : undefined}>
      {compact(of)}
    </span>
  );

/** Billionths of an AI credit, as credits; `≥ 1.02` if more may have been used. */
export const Credits = ({ of, atLeast = false }: { of: number | null | undefined; atLeast?: boolean }) =>
  known((value) => marked(formatAmount(value), { cost_at_least: atLeast }))({ of });

/** What missing the cache cost: at least, if that of some turns is unknown. */
export const Lost = ({ of }: { of: { lost_nano_credits: number | null; unknown_loss_count: number } }) => (
  <Credits of={of.lost_nano_credits} atLeast={of.unknown_loss_count > 0} />
);

/** What requests cost, by unit: `4.21 cr + 2 pr`. */
export const CostOf = ({ of }: { of: Costs }) => {
  const words = costInWords(of, true);
  if (words === undefined) return <Unknown />;
  return (
    <span class="num" title={costInWords(of)}>
      {words}
    </span>
  );
};

/** Milliseconds. */
export const Duration = known((ms) => duration(ms));

/** 0 … 1 */
export const Percent = known(percent);

/** A time in this machine's time zone, without the date if it is today. */
export const Moment = ({ at, now, seconds }: { at: number | null | undefined; now: number; seconds?: boolean }) =>
  at === null || at === undefined || !Number.isFinite(at) ? (
    <Unknown />
  ) : (
    <time class="num" datetime={new Date(at).toISOString()} title={fullTime(at)}>
      {moment(at, now, seconds)}
    </time>
  );

/** A relative time: `3 minutes ago`. */
export const Ago = ({ at, now, never = "never" }: { at: number | null | undefined; now: number; never?: string }) =>
  at === null || at === undefined ? (
    <span class="soft">{never}</span>
  ) : (
    <time class="num" datetime={new Date(at).toISOString()} title={fullTime(at)}>
      {ago(at, now)}
    </time>
  );

/** Untrusted text: one line, shortened, with the full text in its tooltip. */
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

/** Text whose parts in backquotes are shown as code. */
export const Sentence = ({ of }: { of: string }) => (
  <>{of.split(/`([^`]+)`/).map((part, at) => (at % 2 === 0 ? part : <code>{part}</code>))}</>
);
