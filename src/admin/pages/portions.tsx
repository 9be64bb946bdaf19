/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What prompts were made of, as one bar and a list: on a request, on a prompt, and of a week. */
import type { Portion } from "../../books/history/portions";
import { compact, formatAmount, formatCount, percent } from "../../lib/format";
import { type Costs, sum, sumKnown } from "../../lib/money";
import { ShareBar, swatchClass } from "../ui/chart";
import { Credits, Tokens, Unknown } from "../ui/format";
import type { Markup } from "../ui/jsx/jsx-runtime";
import { Table } from "../ui/lists";

/** Portions of one kind and tool. */
type ShownPortion = Pick<Portion, "kind" | "tool" | "tokens" | "cached" | "cost" | "grown">;

/** The same portions of several requests as one. The cost of some of them may be unknown. */
type AddedPortion = ShownPortion & Pick<Costs, "cost_at_least">;

const names: Record<Portion["kind"], string> = {
  tools: "Tools",
  system: "System prompt",
  person: "Messages",
  client: "Added by the client",
  answers: "Answers before",
  reasoning: "Reasoning before",
  calls: "Tool calls",
  results: "Tool results",
  images: "Images",
  files: "Files",
  other: "Other",
  output: "This reply",
  surcharge: "",
};

/** `Tools: github (MCP)`, `Tool results: Read`, `Tools: others`. */
function portionName({ kind, tool }: Pick<Portion, "kind" | "tool">, isSum = false): string {
  const name = kind === "output" && isSum ? "Replies" : names[kind];
  if (tool === null) return kind === "tools" || kind === "results" ? `${name}: others` : name;
  return `${name}: ${tool.startsWith("mcp__") ? `${tool.slice(5)} (MCP)` : tool}`;
}

/** Calls are small, and not told apart. */
function addedPortions(portions: readonly (ShownPortion | AddedPortion)[]): AddedPortion[] {
  // It is a part of the others.
  const beside = portions.filter(({ kind }) => kind !== "surcharge");
  const alike = Map.groupBy(beside, ({ kind, tool }) => `${kind} ${kind === "calls" ? "" : (tool ?? "")}`);
  return [...alike.values()].map((some) => ({
    kind: some[0]!.kind,
    tool: some[0]!.kind === "calls" ? null : some[0]!.tool,
    tokens: sum(some.map(({ tokens }) => tokens)),
    cached: sum(some.map(({ cached }) => cached)),
    cost: sumKnown(some.map(({ cost }) => cost)),
    cost_at_least: some.some((each) => each.cost === null || ("cost_at_least" in each && each.cost_at_least)),
    grown: sumKnown(some.map(({ grown }) => grown)),
  }));
}

interface PortionsProps {
  portions: readonly ShownPortion[];
  caption: string;
  /** Of more than one request: how they grew is another question. */
  isSum?: boolean;
  /** How many are listed. */
  most?: number;
}

/** The dearest first; by tokens where nothing has a price. */
export function Portions({ portions, caption, isSum = false, most = 10 }: PortionsProps): Markup {
  const isPriced = portions.some(({ cost }) => cost !== null && cost > 0);
  const weightOf = ({ cost, tokens }: ShownPortion) => (isPriced ? (cost ?? 0) : tokens);
  const sorted = addedPortions(portions).sort((one, other) => weightOf(other) - weightOf(one));
  const whole = sum(sorted.map(weightOf));
  const listed = sorted.slice(0, sorted.length > most + 1 ? most : undefined);
  const rest = sorted.slice(listed.length);
  const rows: Row[] = listed.map((portion, at) => ({ ...portion, at, name: portionName(portion, isSum) }));
  if (rest.length > 0) {
    const [all] = addedPortions(rest.map((portion) => ({ ...portion, kind: "other", tool: null })));
    rows.push({ ...all!, at: rows.length, name: `${rest.length} smaller parts` });
  }
  const share = (row: Row) => (whole > 0 ? weightOf(row) / whole : 0);
  return (
    <>
      <ShareBar shares={rows.map(share)} label={`${caption}: ${rows[0]?.name ?? ""} is the largest part`} />
      <Table
        class="shares portions"
        caption={caption}
        rows={rows}
        columns={[
          [
            "Part",
            (row) => (
              <>
                <span class={["swatch", swatchClass(row.at)]} /> {row.name}
                <small>{detailsOf(row, isSum)}</small>
              </>
            ),
          ],
        ]}
        numbers={[
          ["Tokens", ({ tokens }) => <Tokens of={tokens} />],
          ["Share", (row) => (isPriced && row.cost === null ? <Unknown /> : percent(share(row)))],
          isPriced && ["Credits", ({ cost, cost_at_least }) => <Credits of={cost} atLeast={cost_at_least} />],
        ]}
      />
    </>
  );
}

interface Row extends AddedPortion {
  name: string;
  at: number;
}

function detailsOf({ kind, tokens, cached, grown }: Row, isSum: boolean): string {
  if (kind === "output") return "";
  const share = tokens > 0 ? cached / tokens : 0;
  const read = share > 0.995 ? "cached" : share < 0.005 ? "not cached" : `${percent(share)} cached`;
  // The ratio of lengths to tokens changes a little from request to request.
  if (isSum || grown === null || Math.abs(grown) <= tokens * 0.01) return read;
  return `${read}, ${grown > 0 ? "+" : "−"}${compact(Math.abs(grown))} since the request before`;
}

/** `1,234 tokens, up to the last mark` in a sentence; nothing where it is not known. */
export const MarkedForCache = ({ marked, isShown }: { marked: number | null; isShown: boolean }) =>
  isShown &&
  marked !== null && (
    <p class="soft">
      {marked === 0
        ? "The client marks nothing for the cache."
        : `The client marks ${formatCount(marked)} tokens for the cache.`}
    </p>
  );

/** What being not in the cache has cost: ` It cost 1.2 credits more.` */
export const LostCost = ({ of }: { of: number | null }) =>
  of !== null && of > 0 && <> That cost {formatAmount(of)} credits.</>;
