/** @jsxRuntime automatic @jsxImportSource #jsx */
/** How the pages list things: names with what they stand for, and the head of a table. */
import type { Child } from "./jsx/jsx-runtime";

/** One line of a `<dl>`. */
export const Pair = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** @param numbers The columns behind the others; numbers stand to the right. */
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
