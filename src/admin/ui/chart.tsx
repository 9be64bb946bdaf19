/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Charts rendered on the server: shapes in SVG, text in HTML, so that it stays legible at every width. */

import { compact } from "../../lib/format";
import type { Markup } from "./jsx/jsx-runtime";
import { Table } from "./lists";

interface Series {
  name: string;
  /** The value after its name in the legend. */
  text: string;
  href?: string;
  /** The sum of all other series, without a colour of its own. */
  rest?: boolean;
  /** A colour with a meaning instead of the next one. */
  tone?: "good" | "bad";
}

export interface Column {
  /** The full label, for tooltips and screen readers. */
  label: string;
  /** The label below the column; may be empty. */
  short: string;
  /** Whether narrow screens hide the label. */
  minor?: boolean;
  href: string;
  /** One for each series; null if unknown. */
  values: (number | null)[];
  /** The total as text. */
  text: string;
}

interface Bars {
  caption: string;
  series: Series[];
  columns: Column[];
  format?: (value: number) => string;
  /** The heading of the column of totals in the table. */
  unit: string;
}

const height = 100;
const width = 12;
const gap = 3;

/** A stacked bar chart whose columns link to their requests and show their values when pointed at, and the same data as a table. */
export function StackedBars({ caption, series, columns, format = compact, unit }: Bars): Markup {
  const sums = columns.map(({ values }) => values.reduce<number>((sum, value) => sum + (value ?? 0), 0));
  const top = niceTop(Math.max(...sums, 0));
  const middle = format(top / 2);
  const wordsFor = (value: number | null) => (value === null ? "unknown" : format(value));
  return (
    <figure class="chart">
      <figcaption>{caption}</figcaption>
      <Legend series={series} />
      <div class="plot">
        <ol class="scale" aria-hidden="true">
          {[format(top), middle === format(top) ? "" : middle, format(0)].map((mark) => (
            <li>{mark}</li>
          ))}
        </ol>
        {/* biome-ignore lint/a11y/useSemanticElements: links in a drawing are no fieldset. */}
        <div class="bars" role="group" aria-label={caption}>
          {columns.map((column, at) => (
            <a href={column.href} class={[at >= columns.length / 2 && "late"]}>
              <span class="hidden">{`${column.label}: ${column.text}`}</span>
              <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
                {stack(column.values, top).map(({ place, from, size }) => (
                  <rect
                    class={classOf(series, place)}
                    x={gap / 2}
                    y={round(height - from - size)}
                    width={width - gap}
                    height={round(size)}
                  />
                ))}
              </svg>
              <span class="tip" aria-hidden="true">
                <b>{column.label}</b>
                {column.values.map(
                  (value, place) =>
                    value !== null &&
                    value > 0 && (
                      <span>
                        <Swatch series={series} place={place} />
                        {series[place]!.name} <i>{format(value)}</i>
                      </span>
                    ),
                )}
                <small>{column.text}</small>
              </span>
            </a>
          ))}
        </div>
        <ol class="names" aria-hidden="true">
          {columns.map(({ short, minor }) => (
            <li class={[minor && "minor"]}>{short}</li>
          ))}
        </ol>
      </div>
      <details>
        <summary>Show as table</summary>
        <section class="scroll" aria-label={`${caption}, as a table`} tabindex="0">
          <Table
            caption={caption}
            rows={columns.map((column, at) => ({ ...column, sum: sums[at]! })).toReversed()}
            columns={[["Time", ({ label, href }) => <a href={href}>{label}</a>]]}
            numbers={[
              ...series.map(({ name }, at) => [name, ({ values }: Column) => wordsFor(values[at]!)] as const),
              [unit, ({ sum }) => format(sum)],
            ]}
          />
        </section>
      </details>
    </figure>
  );
}

const Legend = ({ series }: { series: Series[] }) => (
  <ul class="legend">
    {series.map(({ name, text, href }, place) => (
      <li>
        <Swatch series={series} place={place} />
        {href ? <a href={href}>{name}</a> : name} <span class="num soft">{text}</span>
      </li>
    ))}
  </ul>
);

const Swatch = ({ series, place }: { series: Series[]; place: number }) => (
  <span class={["swatch", classOf(series, place)]} />
);

function classOf(series: Series[], place: number): string {
  const { rest, tone } = series[place]!;
  return tone ? `tone-${tone}` : rest ? "rest" : `s${(place % 6) + 1}`;
}

function stack(values: (number | null)[], top: number) {
  let from = 0;
  return values.flatMap((value, place) => {
    const size = ((value ?? 0) / top) * height;
    if (size <= 0) return [];
    const part = { place, from, size: Math.max(size, 0.6) };
    from += size;
    return [part];
  });
}

/** The next round number whose half is round too: 1, 2, 4, 6 or 10 times a power of ten. */
export function niceTop(max: number): number {
  if (max <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 4, 6, 10].find((step) => step * power >= max)! * power;
}

/** A horizontal meter. @param share 0 … 1 */
export function Meter({
  share,
  label,
  tone,
}: {
  share: number;
  label: string;
  tone?: "good" | "warn" | "bad";
}): Markup {
  const filled = round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <svg class="meter" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="track" width="100" height="1" />
      <rect class={`fill ${tone ?? ""}`} width={filled} height="1" />
    </svg>
  );
}

/** The colour of the next part of a whole: six of them, and then one for all others. */
export const swatchClass = (place: number): string => (place < 6 ? `s${place + 1}` : "rest");

/** Parts of a whole side by side. @param shares 0 … 1 each */
export function ShareBar({ shares, label }: { shares: readonly number[]; label: string }): Markup {
  let from = 0;
  return (
    <svg class="share-bar" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label={label}>
      {shares.map((share, place) => {
        const x = from;
        from += share * 100;
        return (
          <rect class={swatchClass(place)} x={round(x)} width={round(Math.max(0, share * 100 - 0.25))} height="1" />
        );
      })}
    </svg>
  );
}

/** The position of a step within a duration. All values in the same unit. */
export function Stretch({
  from,
  to,
  whole,
  tone = "",
}: {
  from: number;
  to: number;
  whole: number;
  tone?: string;
}): Markup {
  const scale = whole > 0 ? 100 / whole : 0;
  const start = Math.min(99.2, Math.max(0, from * scale));
  return (
    <svg class="stretch" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="1" />
      <rect
        class={`fill ${tone}`}
        x={round(start)}
        width={round(Math.min(100 - start, Math.max(0.8, (to - from) * scale)))}
        height="1"
      />
    </svg>
  );
}

const round = (value: number) => Math.round(value * 100) / 100;
