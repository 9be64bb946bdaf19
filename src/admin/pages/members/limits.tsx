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
      const known = [limits?.[name] ?? ""].flat().join(" ");
      return (
        <>
          {limits && <input type="hidden" name={knownName(name)} value={form?.get(knownName(name)) ?? known} />}
          <TextField
            name={name}
            label={field.label}
            value={form?.get(name) ?? known}
            {...("inputmode" in field ? { inputmode: field.inputmode } : {})}
          >
            <Sentence of={hint} />
          </TextField>
        </>
      );
    })}
  </>
);

/** What a field had when the page was loaded: what was not changed there is not sent, as somebody else may have changed it. */
const knownName = (name: string) => `known.${name}`;

/** What the changed fields say. An empty one is null: no limit. @throws ProxyError `invalid_request` */
export function readLimits(form: URLSearchParams): ChangedLimits {
  const sent = memberFieldNames.flatMap((name) => {
    const text = (form.get(name) ?? "").trim();
    if (text === form.get(knownName(name))) return [];
    return [[name, text === "" ? null : memberFields[name].read(text)]];
  });
  return parseInput(Object.fromEntries(sent), memberLimitsSchema());
}
