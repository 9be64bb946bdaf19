/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The form that adds a budget. */
import { budgetHolders, budgetPeriods, budgetUnits } from "../../../config/budget-schema";
import { parseInput } from "../../../endpoint";
import { newBudgetSchema } from "../../api/budgets";
import { Sentence } from "../../ui/format";
import { CardForm } from "../../ui/forms";
import type { Child } from "../../ui/jsx/jsx-runtime";
import type { Frame } from "../../ui/layout";

const scopeLabels = { member: "Member", account: "Account", key: "Client key", model: "Model", client: "Client" };

/** What a budget's scope may name. @param hasMembers Whether there are members. */
export const scopesFor = (hasMembers: boolean) =>
  (["member", "account", "key", "model", "client"] as const).filter((name) => hasMembers || name !== "member");

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
    text.split(/\r?\n/).flatMap((line) => {
      const [, name, limit] = /^\s*(\S.*?)\s*[\s=:]\s*(\S+)\s*$/.exec(line) ?? [];
      return name === undefined ? (line.trim() === "" ? [] : [[line.trim(), Number.NaN]]) : [[name, Number(limit)]];
    }),
  );

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
    <FormRow name="name" label="Name">
      <input id="f-name" name="name" value={form.get("name") ?? ""} required spellcheck="false" />
    </FormRow>
    <FormRow name="limit" label="Limit">
      <input id="f-limit" name="limit" type="number" min="0" step="any" value={form.get("limit") ?? ""} required />
    </FormRow>
    <FormRow name="each" label="Each" about="Who has this limit for themselves.">
      <Choice
        name="each"
        of={["", ...budgetHolders.filter((holder) => hasMembers || holder !== "member")]}
        chosen={form.get("each")}
        none="all share one amount"
      />
    </FormRow>
    <FormRow name="limits" label="Other limits" about="With Each, the limits of some, a line for each: `anna 3000`.">
      <textarea id="f-limits" name="limits" rows="2" spellcheck="false">
        {form.get("limits") ?? ""}
      </textarea>
    </FormRow>
    <FormRow name="unit" label="Unit" about="One AI credit is one US cent.">
      <Choice name="unit" of={budgetUnits} chosen={form.get("unit")} />
    </FormRow>
    <FormRow name="per" label="Period">
      <Choice name="per" of={budgetPeriods} chosen={form.get("per") ?? "month"} />
    </FormRow>
    <FormRow name="then" label="At the limit">
      <Choice name="then" of={["stop", "warn", "fallback"]} chosen={form.get("then")} />
    </FormRow>
    {scopesFor(hasMembers).map((name) => (
      <FormRow name={name} label={scopeLabels[name]} about="Empty for all; `*` stands for any text.">
        <input id={`f-${name}`} name={name} value={form.get(name) ?? ""} spellcheck="false" />
      </FormRow>
    ))}
  </CardForm>
);

const FormRow = ({
  name,
  label,
  about,
  children,
}: {
  name: string;
  label: string;
  about?: string;
  children?: Child;
}) => (
  <div class="row">
    <label for={`f-${name}`}>{label}</label>
    <div>
      {children}
      {about && (
        <p class="about">
          <Sentence of={about} />
        </p>
      )}
    </div>
  </div>
);

const Choice = ({
  name,
  of,
  chosen,
  none = "",
}: {
  name: string;
  of: readonly string[];
  chosen: string | null;
  /** The words for an empty value. */
  none?: string;
}) => (
  <select id={`f-${name}`} name={name}>
    {of.map((value) => (
      <option value={value} selected={value === chosen}>
        {value || none}
      </option>
    ))}
  </select>
);
