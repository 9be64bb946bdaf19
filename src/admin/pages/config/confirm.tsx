/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The page that shows a change to the config before it is saved: each key with its current and its new value. */

import { parseConfig } from "../../../config/schema";
import { configKeys, valueAt } from "../../../config/secrets";
import type { Stored } from "../../../config/store";
import { plural } from "../../../lib/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { Table } from "../../ui/lists";
import { shownConfig } from "./form";
import { pairLine } from "./pairs";

interface Line {
  name: string;
  before: string[];
  after: string[];
}

/** The keys whose values differ. Secrets are masked. */
export function difference(stored: Stored, next: Stored): Line[] {
  const [before, after] = [parseConfig(stored), parseConfig(next)];
  const [shownBefore, shownAfter] = [shownConfig(stored), shownConfig(next)];
  return configKeys().flatMap(({ path }): Line[] => {
    if (Bun.deepEquals(valueAt(before, path), valueAt(after, path))) return [];
    return [
      {
        name: path.join("."),
        before: linesOf(valueAt(shownBefore, path)),
        after: linesOf(valueAt(shownAfter, path)),
      },
    ];
  });
}

function linesOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map(textOf);
  if (typeof value !== "object") return [typeof value === "boolean" ? (value ? "on" : "off") : String(value)];
  return Object.entries(value).map(([name, inner]) => {
    if (typeof inner !== "object" || inner === null) return pairLine(name, String(inner));
    if (Array.isArray(inner)) return pairLine(name, inner.map(textOf).join(", "));
    const members = Object.entries(inner).map(([member, value]) => `${member} ${textOf(value)}`);
    return `${name}: ${members.join(", ")}`;
  });
}

const textOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);

interface ConfirmProps {
  frame: Frame;
  /** The change, sealed. */
  change: string;
  lines: Line[];
  /** What else the change means. */
  warning: string | undefined;
}

export function Confirm({ frame, change, lines, warning }: ConfirmProps): Markup {
  return (
    <Page frame={frame} title="Review changes" current="/admin/config">
      <p class="lead">{plural(lines.length, "setting")} will change when you save.</p>
      <Table
        class="diff"
        caption="Changes"
        rows={lines}
        columns={[
          ["Setting", ({ name }) => <code>{name}</code>],
          ["Current", ({ before, after }) => <Side lines={before} other={after} />],
          ["New", ({ before, after }) => <Side lines={after} other={before} isNew />],
        ]}
      />
      {warning !== undefined && <p class="note bad">{warning}</p>}
      <form method="post" action="/admin/config/save" class="actions">
        <FormTokenInput frame={frame} />
        <input type="hidden" name="change" value={change} />
        <button type="submit" class="primary">
          Save changes
        </button>
        <button type="submit" name="edit" value="1">
          Go back and edit
        </button>
        <a href="/admin/config" class="button">
          Discard
        </a>
      </form>
    </Page>
  );
}

function Side({ lines, other, isNew = false }: { lines: string[]; other: string[]; isNew?: boolean }): Markup {
  if (lines.length === 0) return <span class="soft">none</span>;
  return (
    <ul class="plain-list">
      {lines.map((line) => {
        const shown = line.slice(0, 300);
        if (other.includes(line)) return <li class="soft">{shown}</li>;
        return <li>{isNew ? <ins>{shown}</ins> : <del>{shown}</del>}</li>;
      })}
    </ul>
  );
}
