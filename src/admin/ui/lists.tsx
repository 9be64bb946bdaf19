/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Description lists and table heads. */
import type { Child } from "./jsx/jsx-runtime";

/** One line of a `<dl>`. */
export const Pair = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
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
