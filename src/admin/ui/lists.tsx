/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Description lists, and the heads and pages of tables. */
import { formatCount } from "../../lib/format";
import type { Child, Markup } from "./jsx/jsx-runtime";

/** One line of a `<dl>`. */
export const Pair = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

interface SectionProps {
  id: string;
  title: Child;
  card?: boolean;
  children?: Child;
}

/** A part of a page under its own heading. */
export const Section = ({ id, title, card, children }: SectionProps) => (
  <section class={[card && "card"]} aria-labelledby={id}>
    <h2 id={id}>{title}</h2>
    {children}
  </section>
);

interface EmptyProps {
  title: string;
  /** Where to go on, and the words for it. */
  link?: readonly [path: string, words: string];
  /** It is what a newcomer does next. */
  primary?: boolean;
  /** A sentence or two. */
  children?: Child;
}

/** In place of a list that has nothing. */
export const Empty = ({ title, link, primary, children }: EmptyProps) => (
  <section class="empty">
    <h2>{title}</h2>
    {children !== undefined && <p>{children}</p>}
    {link && (
      <p>
        <a class={["button", primary && "primary"]} href={link[0]}>
          {link[1]}
        </a>
      </p>
    )}
  </section>
);

interface FigureProps {
  name: string;
  value: Child;
  unit?: string;
  /** What it is made of. */
  children?: Child;
}

/** A number that says most, as an item of a list of cards. */
export const Figure = ({ name, value, unit, children }: FigureProps) => (
  <li>
    <article class="card period">
      <h2>{name}</h2>
      <p class="big">
        {value}
        {unit && <span class="unit"> {unit}</span>}
      </p>
      <p class="soft">{children}</p>
    </article>
  </li>
);

interface TabsProps {
  /** What they choose. */
  label: string;
  /** Each one's name and the words for it. */
  items: readonly (readonly [name: string, label: string])[];
  chosen?: string;
  pathOf(name: string): string;
}

export const Tabs = ({ label, items, chosen, pathOf }: TabsProps) => (
  <nav class="tabs" aria-label={label}>
    <ul>
      {items.map(([name, words]) => (
        <li>
          <a href={pathOf(name)} aria-current={name === chosen ? "true" : undefined}>
            {words}
          </a>
        </li>
      ))}
    </ul>
  </nav>
);

/** A field that hides what does not match it; without a script there is none. @param among The items, as a CSS selector. */
export const Picker = ({ label, among, placeholder }: { label: string; among: string; placeholder: string }) => (
  <search class="picker" hidden>
    <label class="field">
      <span>{label}</span>
      <input type="search" data-filter={among} placeholder={placeholder} />
    </label>
  </search>
);

/** @param numbers Right-aligned columns after the others. */
export const Head = ({ columns, numbers = [] }: { columns: string[]; numbers?: string[] }) => (
  <thead>
    <tr>
      {columns.map((name) => (
        <th scope="col" data-label={name}>
          {name}
        </th>
      ))}
      {numbers.map((name) => (
        <th scope="col" class="right" data-label={name}>
          {name}
        </th>
      ))}
    </tr>
  </thead>
);

/** A column's name and what it says of a row; false for none. */
type Column<Row> = readonly [name: string, cell: (row: Row) => Child] | false | undefined;

interface TableProps<Row> {
  class?: string;
  /** For screen readers. */
  caption: string;
  rows: readonly Row[];
  /** What the first one says names the row. */
  columns: readonly Column<Row>[];
  /** Right-aligned columns after the others. */
  numbers?: readonly Column<Row>[];
  /** The row is greyed out. */
  isOff?(row: Row): boolean;
}

export function Table<Row>({ class: look, caption, rows, columns, numbers = [], isOff }: TableProps<Row>): Markup {
  const [first, ...others] = columns.filter((column) => column !== undefined && column !== false);
  const amounts = numbers.filter((column) => column !== undefined && column !== false);
  return (
    <table class={look}>
      <caption class="hidden">{caption}</caption>
      <Head columns={[first!, ...others].map(([name]) => name)} numbers={amounts.map(([name]) => name)} />
      <tbody>
        {rows.map((row) => (
          <tr class={[isOff?.(row) === true && "off"]}>
            <th scope="row">{first![1](row)}</th>
            {others.map(([name, cell]) => (
              <td data-label={name}>{cell(row)}</td>
            ))}
            {amounts.map(([name, cell]) => {
              const said = cell(row);
              return (
                <td data-label={name} class={["right", typeof said !== "object" && "num"]}>
                  {said}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface CursorPagerProps {
  /** Of the newest rows; undefined on their page. */
  newest: string | undefined;
  /** Of the next older ones; undefined if there are none. */
  older: string | undefined;
  /** Below the links. */
  children?: Child;
}

/** The links of a list that is read from the newest row on. */
export const CursorPager = ({ newest, older, children }: CursorPagerProps) => (
  <div class="pager">
    <nav aria-label="Pages of the table">
      {newest !== undefined && (
        <a class="button" href={newest} rel="first">
          Newest
        </a>
      )}
      {older !== undefined && (
        <a class="button" href={older} rel="next">
          Older
        </a>
      )}
    </nav>
    {children}
  </div>
);

interface OffsetPagerProps {
  offset: number;
  limit: number;
  /** Rows on this page, and on all. */
  shown: number;
  total: number;
  pathOf(offset: number): string;
  /** Beside the links. */
  children?: Child;
}

/** The links to the pages before and after, and which rows these are. */
export const OffsetPager = ({ offset, limit, shown, total, pathOf, children }: OffsetPagerProps) => (
  <div class="pager">
    <nav aria-label="Pages of the table">
      {offset > 0 && (
        <a rel="prev" href={pathOf(Math.max(0, offset - limit))}>
          Previous
        </a>
      )}
      <span class="soft">
        {shown === 0 ? "None" : `${formatCount(offset + 1)}–${formatCount(offset + shown)}`} of {formatCount(total)}
      </span>
      {offset + shown < total && (
        <a rel="next" href={pathOf(offset + limit)}>
          Next
        </a>
      )}
    </nav>
    {children}
  </div>
);
