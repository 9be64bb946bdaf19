/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The fields for a member's limits, and how they are read. */
import { parseInput } from "../../../lib/input";
import {
  type ChangedLimits,
  type MemberLimits,
  memberFieldNames,
  memberFields,
  memberLimitsSchema,
} from "../../../people/keys/member-fields";
import { TextField } from "../../ui/form-fields";
import { Sentence } from "../../ui/format";

interface LimitFieldsProps {
  /** The values to show again. */
  form?: URLSearchParams | undefined;
  /** Those that the member has. */
  limits?: MemberLimits;
}

export const LimitFields = ({ form, limits }: LimitFieldsProps) => (
  <>
    {memberFieldNames.map((name) => {
      const { hint, ...field } = memberFields[name];
      const value = form?.get(name) ?? [limits?.[name] ?? ""].flat().join(" ");
      return (
        <TextField
          name={name}
          label={field.label}
          value={value}
          {...("inputmode" in field ? { inputmode: field.inputmode } : {})}
        >
          <Sentence of={hint} />
        </TextField>
      );
    })}
  </>
);

/** What the fields say. An empty one is null: no limit. @throws ProxyError `invalid_request` */
export function readLimits(form: URLSearchParams): ChangedLimits {
  const sent = memberFieldNames.map((name) => {
    const text = (form.get(name) ?? "").trim();
    return [name, text === "" ? null : memberFields[name].read(text)];
  });
  return parseInput(Object.fromEntries(sent), memberLimitsSchema());
}
