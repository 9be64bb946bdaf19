/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Description lists, and the heads and pages of tables. */
import { formatCount } from "../../format";
import type { Child } from "./jsx/jsx-runtime";

/** One line of a `<dl>`. */
export const Pair = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
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
        <th scope="col">{name}</th>
      ))}
      {numbers.map((name) => (
        <th scope="col" class="right">
          {name}
        </th>
      ))}
    </tr>
  </thead>
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
      {shown > 0 && offset + shown < total && (
        <a rel="next" href={pathOf(offset + limit)}>
          Next
        </a>
      )}
    </nav>
    {children}
  </div>
);
