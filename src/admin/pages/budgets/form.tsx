/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The form that adds a budget. */
import { budgetHolders, budgetPeriods, budgetUnits } from "../../../config/budget-schema";
import { parseInput } from "../../../lib/input";
import { newBudgetSchema } from "../../api/budgets";
import { ChoiceField, FormRow, TextField } from "../../ui/form-fields";
import { Sentence } from "../../ui/format";
import { CardForm } from "../../ui/forms";
import type { Frame } from "../../ui/layout";
import { withQuery } from "../../ui/links";

const scopeLabels = {
  member: "Member",
  account: "Account",
  key: "Client key",
  model: "Model",
  project: "Project",
};

/** What a budget's scope may name. @param hasMembers Whether there are members. */
export const scopesFor = (hasMembers: boolean) =>
  (["member", "account", "key", "model", "project"] as const).filter((name) => hasMembers || name !== "member");

/** @throws ProxyError `invalid_request`. */
export function readBudget(form: URLSearchParams) {
  const text = (name: string) => (form.get(name) ?? "").trim();
  const scope = Object.fromEntries(scopesFor(true).flatMap((name) => (text(name) === "" ? [] : [[name, text(name)]])));
  const sent = {
    name: text("name"),
    unit: text("unit"),
    limit: text("limit") === "" ? undefined : Number(text("limit")),
    per: text("per"),
    then: text("then"),
    ...(text("each") !== "" && { each: text("each") }),
    ...(text("limits") !== "" && { limits: readLimits(text("limits")) }),
    scope,
  };
  return parseInput(sent, newBudgetSchema);
}

/** @param text A line for each: `anna 3000`. The schema refuses what is no number. */
const readLimits = (text: string) =>
  Object.fromEntries(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .map((line) => {
        const [, name = line, limit] = /^(.*[^\s=:])[\s=:]+([^\s=:]+)$/.exec(line) ?? [];
        return [name, Number(limit)];
      }),
  );

/** What most people want; each fills in the form. One AI credit is one US cent. */
const presets = [
  { words: "Stop at $5 a day", name: "daily", limit: "500", unit: "credits", per: "day", then: "stop" },
  { words: "Warn at $50 a month", name: "monthly", limit: "5000", unit: "credits", per: "month", then: "warn" },
  {
    words: "$20 a month for each key",
    name: "keys",
    limit: "2000",
    unit: "credits",
    per: "month",
    then: "stop",
    each: "key",
  },
];

export const NewBudgetForm = ({
  frame,
  form,
  hasMembers,
}: {
  frame: Frame;
  /** The values to show again. */
  form: URLSearchParams;
  hasMembers: boolean;
}) => (
  <CardForm frame={frame} to="/admin/budgets" title="New budget" submit="Add budget">
    <ul class="presets" aria-label="Start from">
      {presets.map(({ words, ...fields }) => (
        <li>
          <a class="button" href={`${withQuery("/admin/budgets", fields)}#f-name`}>
            {words}
          </a>
        </li>
      ))}
    </ul>
    <TextField name="name" label="Name" value={form.get("name")} required />
    <TextField name="limit" label="Limit" value={form.get("limit")} type="number" min="0" step="any" required />
    <ChoiceField name="unit" label="Unit" choices={asChoices(budgetUnits)} chosen={form.get("unit")}>
      One AI credit is one US cent.
    </ChoiceField>
    <ChoiceField name="per" label="Period" choices={asChoices(budgetPeriods)} chosen={form.get("per") ?? "month"} />
    <ChoiceField
      name="then"
      label="At the limit"
      choices={asChoices(["stop", "warn", "fallback"])}
      chosen={form.get("then")}
    />
    <details open={["each", "limits", ...scopesFor(hasMembers)].some((name) => form.get(name))}>
      <summary>Only some requests, or a limit for each</summary>
      <div class="entries">
        <ChoiceField name="each" label="Each" choices={holderChoices(hasMembers)} chosen={form.get("each")}>
          Give each key or account its own limit.
        </ChoiceField>
        <FormRow
          name="limits"
          label="Other limits"
          about={<Sentence of="Different limits for some, one per line: `anna 3000`." />}
          field={(attributes) => (
            <textarea {...attributes} rows="2" spellcheck="false">
              {form.get("limits") ?? ""}
            </textarea>
          )}
        />
        {scopesFor(hasMembers).map((name) => (
          <TextField name={name} label={scopeLabels[name]} value={form.get(name)}>
            <Sentence of="Empty for all; `*` stands for any text." />
          </TextField>
        ))}
      </div>
    </details>
  </CardForm>
);

const asChoices = (values: readonly string[]) => values.map((value) => [value, value] as const);

const holderChoices = (hasMembers: boolean) => [
  ["", "all share one amount"] as const,
  ...asChoices(budgetHolders.filter((holder) => hasMembers || holder !== "member")),
];
