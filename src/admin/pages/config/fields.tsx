/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The fields of the config form: one input for each kind of value. */

import { type FieldAttributes, FormRow } from "../../ui/form-fields";
import { Sentence } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { entriesIn, type Field, type FieldSchema, fieldKindOf, membersOf, takesLists, takesObjects } from "./form";

interface RowProps {
  field: Field;
  form: URLSearchParams;
  /** The config can be edited in a file. */
  hasFile: boolean;
  isSet: boolean;
  /** Why its value was not saved. */
  fault: string | undefined;
}

/** A config key with its label, description, default and value. */
export function FieldRow({ field, form, hasFile, isSet, fault }: RowProps): Markup {
  const { name, schema, kind } = field;
  const about = (
    <>
      {schema.description && <Sentence of={schema.description} />} {hintOf(field)}
      {schema.secret && " Secrets are never shown in full: a value that begins with … stands for the saved one."}
      {schema.restart &&
        hasFile &&
        " Changes made here apply immediately; edits in the config file apply after a restart."}
      <span class="soft">
        {" "}
        {defaultOf(field)}
        {isSet && <span class="badge idle">Customized</span>}
      </span>
    </>
  );
  if (kind === "entries") return <Entries field={field} form={form} about={about} fault={fault} />;
  return (
    <FormRow
      name={name}
      label={<KeyLabel title={schema.title} name={name} />}
      about={about}
      fault={fault}
      field={(attributes) => <Input field={field} attributes={attributes} text={form.get(name) ?? ""} />}
    />
  );
}

const KeyLabel = ({ title, name }: { title: string | undefined; name: string }) => (
  <>
    {title ?? name} <code>{name}</code>
  </>
);

function hintOf({ kind, schema }: Pick<Field, "kind" | "schema">): string | false {
  if (kind === "json") return "JSON.";
  if (kind === "lines") return takesObjects(schema) ? "One per line; an object as JSON." : "One per line.";
  return (
    kind === "pairs" &&
    (takesLists(schema) ? "One per line, as name = value, value." : "One per line, as name = value.")
  );
}

function defaultOf({ schema: { default: value, secret } }: Field): string {
  if (value === undefined || secret) return "Default: none.";
  if (typeof value === "object")
    return Object.keys(value ?? {}).length === 0 ? "Default: none." : `Default: ${JSON.stringify(value)}.`;
  return `Default: ${typeof value === "boolean" ? (value ? "on" : "off") : String(value)}.`;
}

interface InputProps {
  field: Pick<Field, "kind" | "schema">;
  attributes: FieldAttributes;
  text: string;
}

function Input({ field: { kind, schema }, attributes, text }: InputProps): Markup {
  switch (kind) {
    case "switch":
      return <input {...attributes} type="checkbox" checked={text !== ""} />;
    case "choice":
      return (
        <select {...attributes}>
          {schema.default === undefined && <option value="">(by default)</option>}
          {schema.enum!.map((value) => (
            <option value={value} selected={value === (text || schema.default)}>
              {value}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          {...attributes}
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
        <textarea {...attributes} rows={rowsFor(text)} spellcheck="false">
          {text}
        </textarea>
      );
    default:
      return <input {...attributes} type="text" value={text} spellcheck="false" />;
  }
}

/** Lines of a text area: one more than the text has, and one for none. */
const rowsFor = (text: string) => String(Math.min(8, text === "" ? 1 : text.split("\n").length + 1));

interface EntriesProps {
  field: Field;
  form: URLSearchParams;
  about: Child;
  fault: string | undefined;
}

/** A group of fields for each entry, and an empty group for a new entry. */
function Entries({ field, form, about, fault }: EntriesProps): Markup {
  const count = entriesIn(form, field.name);
  return (
    <div class="entries">
      {fault && <p class="fault">{fault}</p>}
      <p class="about">{about}</p>
      {Array.from({ length: count + 1 }, (_, at) => {
        const name = form.get(`${field.name}.${at}.name`) ?? "";
        const isNew = at === count;
        const fieldset = (
          <fieldset>
            <legend>{isNew ? "New entry" : name.slice(0, 80) || "Unnamed"}</legend>
            <EntryField
              field={field}
              form={form}
              at={at}
              member="name"
              schema={{
                type: "string",
                title: "Name",
                description: "The first part of its models' names, as in `name/model`, and of paths of its own.",
              }}
            />
            {Object.entries(membersOf(field.schema)).map(([member, schema]) => (
              <EntryField field={field} form={form} at={at} member={member} schema={schema} />
            ))}
            {!isNew && (
              <label class="check">
                <input type="checkbox" name={`${field.name}.${at}.remove`} /> Remove
              </label>
            )}
          </fieldset>
        );
        return isNew ? (
          <details open={fault !== undefined}>
            <summary>Add entry</summary>
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
  const text = form.get(name) ?? "";
  const kind = fieldKindOf(schema);
  const about = (
    <>
      {schema.description && <Sentence of={schema.description} />} {hintOf({ kind, schema })}
    </>
  );
  return (
    <FormRow
      name={name}
      label={<KeyLabel title={schema.title} name={member} />}
      about={about}
      field={(attributes) => <Input field={{ kind, schema }} attributes={attributes} text={text} />}
    />
  );
}
