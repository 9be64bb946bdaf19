/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The fields for a member's limits, and how they are read. */
import { parseInput } from "../../../endpoint";
import { memberLimitsSchema } from "../../../keys/member-schemas";
import { TextField, wordsIn } from "../../ui/form-fields";

interface LimitFieldsProps {
  models: string | null;
  keyDays: string | null;
}

export const LimitFields = ({ models, keyDays }: LimitFieldsProps) => (
  <>
    <TextField name="models" label="Models" value={models}>
      Ids, separated by spaces; <code>*</code> stands for any text, as in <code>claude-*</code>. Empty for all models.
    </TextField>
    <TextField name="key_days" label="Days per key" value={keyDays} inputmode="numeric">
      A key expires so many days after it was made, such as 90. Empty for never.
    </TextField>
  </>
);

/** What the fields say. An empty one is null: no limit. @throws ProxyError `invalid_request` */
export function readLimits(form: URLSearchParams) {
  const models = wordsIn(form.get("models") ?? "");
  const days = (form.get("key_days") ?? "").trim();
  const sent = { models: models.length > 0 ? models : null, key_days: days === "" ? null : Number(days) };
  return parseInput(sent, memberLimitsSchema());
}
