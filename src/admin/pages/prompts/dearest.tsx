/** @jsxRuntime automatic @jsxImportSource #jsx */
import { dayMs } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import { listPrompts } from "../../api/prompts";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { promptsPath } from "../../ui/links";
import { PromptTable } from "./page";

const most = 5;

/** The prompts of the last 24 hours that cost most, for the overview; nothing if there are not several. */
export async function dearestPrompts(app: Scope, now: number): Promise<Markup | false> {
  const { items } = await listPrompts(app, { from_ms: now - dayMs }, most, undefined, "dearest");
  return (
    items.length > 1 && (
      <>
        <h3>
          <a href={promptsPath({}, { order: "dearest", period: "24h" })}>Dearest prompts, last 24 hours</a>
        </h3>
        <PromptTable items={items} now={now} order="dearest" />
      </>
    )
  );
}
