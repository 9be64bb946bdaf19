/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The config: every key with what it means; a change is shown before it is made, and made as by the admin API. */
import { configKeys, valueAt } from "../config/marks";
import { bothSpelled, patched } from "../config/patch";
import { parseConfig } from "../config/schema";
import { asProxyError, type ProxyError } from "../errors";
import { changeConfig } from "./config";
import { entriesIn, type Field, fields, formOf, membersOf, patchFrom, type Schema, shownConfig } from "./config-form";
import { plural, Sentence } from "./figures";
import type { Child, Markup } from "./jsx/jsx-runtime";
import { FormToken, type Frame, Page } from "./layout";
import { html, redirect, type Visit } from "./visit";

export function configPage({ app, frame, url, changes }: Visit): Markup {
  const { config } = app;
  config.look();
  const before = changes.get(url.searchParams.get("change"));
  const saved = (url.searchParams.get("saved") ?? "")
    .split(",")
    .filter((name) => fields.some((field) => field.path[0] === name));
  return (
    <Form
      visit={{ app, frame }}
      form={before ? withoutSecrets(before.form) : formOf(shownConfig(config.stored))}
      saved={saved}
      unchanged={url.searchParams.has("unchanged")}
    />
  );
}

/** The change as it would be, before it is made. */
export function confirmConfig({ app, frame, form, changes }: Visit): Response {
  const { config } = app;
  try {
    config.look();
    const patch = patchFrom(form, shownConfig(config.stored));
    if (Object.keys(patch).length === 0) return redirect("/admin/config?unchanged=1");
    const next = patched(config.stored, patch);
    const id = changes.put({ patch, revision: config.revision, form });
    return html(<Confirm frame={frame} id={id} lines={difference(config.stored, next)} />);
  } catch (thrown) {
    return again(asProxyError(thrown), { app, frame }, form);
  }
}

export async function saveConfig({ app, frame, request, form, exposed, changes }: Visit): Promise<Response> {
  const id = form.get("change") ?? "";
  const change = changes.get(id);
  if (!change) return redirect("/admin/config?unchanged=1");
  const body = JSON.stringify({ ...change.patch, revision: change.revision });
  const headers = { "content-type": "application/json" };
  try {
    await changeConfig(app, new Request(request.url, { method: "POST", headers, body }), exposed);
  } catch (thrown) {
    return again(asProxyError(thrown), { app, frame }, withoutSecrets(change.form));
  }
  changes.drop(id);
  return redirect(`/admin/config?saved=${Object.keys(change.patch).join(",")}`);
}

const again = (fault: ProxyError, visit: Pick<Visit, "app" | "frame">, form: URLSearchParams) =>
  html(<Form visit={visit} form={form} fault={fault} />, fault.status);

/** A secret that was typed is typed again: it is not sent back to the browser. */
function withoutSecrets(form: URLSearchParams): URLSearchParams {
  const shown = new URLSearchParams(form);
  const isMasked = (line: string) => line.trim() === "" || line.startsWith("…");
  for (const { name, kind, schema } of fields) {
    if (schema.secret) shown.set(name, (form.get(name) ?? "").split(/\r?\n/).filter(isMasked).join("\n"));
    if (kind !== "entries") continue;
    for (let at = 0; at < entriesIn(form, name); at += 1)
      for (const member of membersOf(schema).filter((each) => memberOf(schema, each).secret))
        if (!isMasked(form.get(`${name}.${at}.${member}`) ?? "")) shown.set(`${name}.${at}.${member}`, "");
  }
  return shown;
}

const memberOf = ({ additionalProperties }: Schema, member: string): Schema =>
  (typeof additionalProperties === "object" ? additionalProperties.properties?.[member] : undefined) ?? {};

// ── The form ──

interface FormProps {
  visit: Pick<Visit, "app" | "frame">;
  form: URLSearchParams;
  fault?: ProxyError;
  saved?: string[];
  unchanged?: boolean;
}

function Form({ visit: { app, frame }, form, fault, saved = [], unchanged }: FormProps): Markup {
  const { stored, waiting, fault: fileFault } = app.config;
  const written = bothSpelled(stored);
  return (
    <Page frame={frame} title="Config" current="/admin/config">
      <p class="lead">
        Kept in <code>config.json</code>. A change is shown to you once more before it is made, and holds at once.
      </p>
      {saved.length > 0 && (
        <p class="note good" role="status">
          Saved: {saved.join(", ")}.
        </p>
      )}
      {unchanged && (
        <p class="note info" role="status">
          Nothing was changed.
        </p>
      )}
      {fault && (
        <div class="note bad" role="alert">
          <strong>Nothing was changed.</strong> <Sentence of={fault.message} />
        </div>
      )}
      {fileFault && (
        <p class="note bad">
          <strong>The file does not hold.</strong> {fileFault} What held before goes on.
        </p>
      )}
      {waiting.length > 0 && (
        <p class="note info">{waiting.join(", ")} was edited in the file and counts from the next start.</p>
      )}
      <form method="post" action="/admin/config" class="config" autocomplete="off">
        <FormToken frame={frame} />
        {groups.map(({ title, names }) => (
          <fieldset class="card">
            <legend>{title}</legend>
            {fieldsOf(names).map((field) => (
              <FieldRow
                field={field}
                form={form}
                isSet={valueAt(written, field.path) !== undefined}
                isWrong={fault !== undefined && isAbout(fault.details.param, field)}
              />
            ))}
          </fieldset>
        ))}
        <div class="actions">
          <button type="submit" class="primary">
            Show what changes
          </button>
          <a href="/admin/config" class="button">
            Start over
          </a>
        </div>
      </form>
    </Page>
  );
}

/** Only an order for the eye: what is named nowhere stands in the last group. */
const groups: { title: string; names: string[] | "others" }[] = [
  { title: "Access", names: ["auth.apiKeys", "allowedHosts", "allowedOrigins"] },
  { title: "Routing", names: ["modelAliases", "accountAffinity", "freeModelRouting", "useResponsesApiWebSearch"] },
  { title: "Other upstreams", names: ["providers"] },
  { title: "History and log", names: ["retentionDays", "maxRows", "logLevel"] },
  { title: "More", names: "others" },
];

function fieldsOf(names: string[] | "others"): Field[] {
  if (names !== "others") return names.flatMap((name) => fields.find((field) => field.name === name) ?? []);
  const elsewhere = groups.flatMap((group) => (group.names === "others" ? [] : group.names));
  return fields.filter(({ name }) => !elsewhere.includes(name));
}

const isAbout = (param: string | undefined, { name }: Field) =>
  param !== undefined && (param === name || param.startsWith(`${name}.`) || param.startsWith(`${name}[`));

interface RowProps {
  field: Field;
  form: URLSearchParams;
  isSet: boolean;
  isWrong: boolean;
}

function FieldRow({ field, form, isSet, isWrong }: RowProps): Markup {
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
  pairs: "One on each line, as name = value.",
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
            {membersOf(field.schema).map((member) => (
              <EntryField field={field} form={form} at={at} member={member} schema={memberOf(field.schema, member)} />
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
  schema: Schema;
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

// ── Before it is saved ──

interface Line {
  name: string;
  before: string[];
  after: string[];
  secret: boolean;
}

/** What is different, key by key; secrets by their masks. */
function difference(stored: object, next: object): Line[] {
  const [before, after] = [parseConfig(stored), parseConfig(next)];
  const [shownBefore, shownAfter] = [shownConfig(stored as never), shownConfig(next as never)];
  return configKeys.flatMap(({ path }): Line[] => {
    if (Bun.deepEquals(valueAt(before, path), valueAt(after, path))) return [];
    const secret = fields.some((field) => field.name === path.join(".") && field.schema.secret);
    return [
      {
        name: path.join("."),
        before: linesOf(valueAt(shownBefore, path)),
        after: linesOf(valueAt(shownAfter, path)),
        secret,
      },
    ];
  });
}

function linesOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === "object")
    return Object.entries(value).map(([name, inner]) =>
      typeof inner === "object" && inner !== null
        ? `${name}: ${Object.entries(inner)
            .map(([member, each]) => `${member} ${String(each)}`)
            .join(", ")}`
        : `${name} = ${String(inner)}`,
    );
  return [typeof value === "boolean" ? (value ? "on" : "off") : String(value)];
}

function Confirm({ frame, id, lines }: { frame: Frame; id: string; lines: Line[] }): Markup {
  return (
    <Page frame={frame} title="Is this right?" current="/admin/config">
      <p class="lead">{plural(lines.length, "key")} will change, at once and for good.</p>
      <table class="diff">
        <caption class="hidden">What changes</caption>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Now</th>
            <th scope="col">Then</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr>
              <th scope="row">
                <code>{line.name}</code>
              </th>
              <td data-label="Now">
                <Side lines={line.before} other={line.after} />
              </td>
              <td data-label="Then">
                <Side lines={line.after} other={line.before} isNew />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <form method="post" action="/admin/config/save" class="actions">
        <FormToken frame={frame} />
        <input type="hidden" name="change" value={id} />
        <button type="submit" class="primary">
          Save
        </button>
        <a href={`/admin/config?change=${id}`} class="button">
          Go back and edit
        </a>
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
