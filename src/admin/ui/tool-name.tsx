/** @jsxRuntime automatic @jsxImportSource #jsx */
import { toolOf } from "../../clients/index";
import { Value } from "./format";
import type { Markup } from "./jsx/jsx-runtime";

/** A client as people call it, `Claude Code 2.1.330`; an unknown one as it calls itself. */
export function ToolName({ of, max = 30 }: { of: string | null; max?: number }): Markup {
  const tool = of === null ? undefined : toolOf(of);
  if (!tool) return <Value of={of} max={max} />;
  return (
    <span title={of!.slice(0, 256)}>
      {tool.name} <span class="soft">{tool.version.slice(0, max)}</span>
    </span>
  );
}
