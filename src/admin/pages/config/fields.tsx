/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The fields of the config's form: for each kind of key the input that a person fills it in by. */

import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { entriesIn, type Field, type FieldSchema, membersOf } from "./form";

interface RowProps {
  field: Field;
  form: URLSearchParams;
  isSet: boolean;
  isWrong: boolean;
}

/** A key with what it means and what it is now. */
export function FieldRow({ field, form, isSet, isWrong }: RowProps): Markup {
  const { name, schema, kind } = field;
  const id = `f-${name.replaceAll(".", "-")}`;
  const about = (
    <p class="about" id={`${id}-about`}>
      {schema.description} {hints[kind]}
      {schema.secret && " Never shown in full: a line that begins with … stands for the one that is kept."}
      {schema.restart && " Edited in the file, it counts from the next start; changed here, at once."}
      <span class="soft">
        {" "}
        {defaultOf(field)}
        {isSet && <span class="badge idle">set by you</span>}
      </span>
    </p>
  );
  if (kind === "entries") return <Entries field={field} form={form} about={about} isWrong={isWrong} />;
  return (
    <div class={["row", isWrong && "wrong"]}>
      <label for={id}>{name}</label>
      <div>
        <Input field={field} id={id} text={form.get(name) ?? ""} isWrong={isWrong} />
        {about}
      </div>
    </div>
  );
}

const hints: Partial<Record<Field["kind"], string>> = {
  lines: "One on each line.",
  pairs:
    "One on each line, as name = value; in double quotes, as in JSON, what has = in its name or begins with a quote.",
  json: "As JSON.",
};

function defaultOf({ schema: { default: value, secret } }: Field): string {
  if (value === undefined || secret) return "Default: none.";
  if (typeof value === "object")
    return Object.keys(value ?? {}).length === 0 ? "Default: none." : `Default: ${JSON.stringify(value)}.`;
  return `Default: ${typeof value === "boolean" ? (value ? "on" : "off") : String(value)}.`;
}

function Input({ field, id, text, isWrong }: { field: Field; id: string; text: string; isWrong: boolean }): Markup {
  const { name, kind, schema } = field;
  const common = {
    id,
    name,
    "aria-describedby": `${id}-about`,
    "aria-invalid": isWrong ? "true" : undefined,
  } as const;
  switch (kind) {
    case "switch":
      return <input {...common} type="checkbox" checked={text !== ""} />;
    case "choice":
      return (
        <select {...common}>
          {schema.enum!.map((value) => (
            <option value={value} selected={value === text}>
              {value}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          {...common}
          type="number"
          min={schema.minimum}
          max={schema.maximum}
          step={schema.type === "integer" ? "1" : "any"}
          value={text}
        />
      );
    case "lines":
    case "pairs":
    case "json":
      return (
        <textarea {...common} rows={String(Math.min(8, Math.max(2, text.split("\n").length + 1)))} spellcheck="false">
          {text}
        </textarea>
      );
    default:
      return <input {...common} type="text" value={text} spellcheck="false" />;
  }
}

interface EntriesProps {
  field: Field;
  form: URLSearchParams;
  about: Child;
  isWrong: boolean;
}

/** One group of fields for each entry, and an empty one for a new one. */
function Entries({ field, form, about, isWrong }: EntriesProps): Markup {
  const known = entriesIn(form, field.name);
  return (
    <div class={["entries", isWrong && "wrong"]}>
      {about}
      {Array.from({ length: known + 1 }, (_, at) => {
        const name = form.get(`${field.name}.${at}.name`) ?? "";
        const isNew = at === known;
        const fieldset = (
          <fieldset>
            <legend>{isNew ? "A new one" : name.slice(0, 80) || "Without a name"}</legend>
            <EntryField
              field={field}
              form={form}
              at={at}
              member="name"
              schema={{ type: "string", description: "What its paths begin with." }}
            />
            {Object.entries(membersOf(field.schema)).map(([member, schema]) => (
              <EntryField field={field} form={form} at={at} member={member} schema={schema} />
            ))}
            {!isNew && (
              <label class="check">
                <input type="checkbox" name={`${field.name}.${at}.remove`} /> Remove it
              </label>
            )}
          </fieldset>
        );
        return isNew ? (
          <details open={isWrong}>
            <summary>Add one</summary>
            {fieldset}
          </details>
        ) : (
          fieldset
        );
      })}
    </div>
  );
}

interface EntryFieldProps {
  field: Field;
  form: URLSearchParams;
  at: number;
  member: string;
  schema: FieldSchema;
}

function EntryField({ field, form, at, member, schema }: EntryFieldProps): Markup {
  const name = `${field.name}.${at}.${member}`;
  const id = `f-${name.replaceAll(".", "-")}`;
  const text = form.get(name) ?? "";
  return (
    <div class="row">
      <label for={id}>{member}</label>
      <div>
        {schema.enum ? (
          <select id={id} name={name} aria-describedby={`${id}-about`}>
            {schema.enum.map((value) => (
              <option value={value} selected={value === (text || schema.default)}>
                {value}
              </option>
            ))}
          </select>
        ) : (
          <input id={id} name={name} value={text} spellcheck="false" aria-describedby={`${id}-about`} />
        )}
        <p class="about" id={`${id}-about`}>
          {schema.description}
        </p>
      </div>
    </div>
  );
}
