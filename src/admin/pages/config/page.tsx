/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The config page. Changes are shown for review first, then saved as the admin API saves them. */

import { patched, underBothNames } from "../../../config/patch";
import { parseConfig } from "../../../config/schema";
import { valueAt } from "../../../config/secrets";
import { asProxyError, type ProxyError } from "../../../lib/errors";
import { isObject, parseJson } from "../../../lib/json";
import { withCountedBudgets } from "../../../people/budgets/stored-budgets";
import { meaningOfLastKey, servedWithoutKeys } from "../../../people/keys/key-list";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, Page } from "../../ui/layout";
import { FailureNote } from "../../ui/notes";
import { html, type OwnerContext, redirect } from "../../ui/page-context";
import { Confirm, difference } from "./confirm";
import { FieldRow } from "./fields";
import { entriesIn, type Field, fields, formOf, membersOf, patchFrom, shownConfig } from "./form";

/** The part of the form that has the config as it was shown, secrets masked: only what a person has changed since is saved. */
const shownName = "shown";

export async function configPage({ app, frame, url }: OwnerContext): Promise<Markup> {
  const { config } = app;
  await config.reload();
  const saved = (url.searchParams.get("saved") ?? "")
    .split(",")
    .filter((name) => fields.some((field) => field.path[0] === name));
  const shown = shownConfig(config.stored);
  const form = formOf(shown);
  form.set(shownName, JSON.stringify(shown));
  return <Form context={{ app, frame }} form={form} saved={saved} unchanged={url.searchParams.has("unchanged")} />;
}

/** Shows the change for review; nothing is saved yet. */
export async function confirmConfig({ app, frame, form, changes }: OwnerContext): Promise<Response> {
  const { config } = app;
  try {
    await config.reload();
    const present = shownConfig(config.stored);
    const shown = parseJson(form.get(shownName) ?? "");
    const patch = patchFrom(form, isObject(shown) ? shown : present, present);
    if (Object.keys(patch).length === 0) return redirect("/admin/config?unchanged=1");
    const next = patched(config.stored, patch);
    const change = changes.seal({ patch, revision: config.revision, form });
    const isLast = app.clientKeys.length > 0 && parseConfig(next).auth.apiKeys.length === 0;
    const warning = isLast ? meaningOfLastKey(servedWithoutKeys(app)) : undefined;
    return html(<Confirm frame={frame} change={change} lines={difference(config.stored, next)} warning={warning} />);
  } catch (thrown) {
    return again(asProxyError(thrown), { app, frame }, form);
  }
}

export async function saveConfig({ app, frame, form, changes }: OwnerContext): Promise<Response> {
  const change = changes.open(form.get("change"));
  if (!change) return redirect("/admin/config?unchanged=1");
  const shown = withoutSecrets(change.form);
  if (form.has("edit")) return html(<Form context={{ app, frame }} form={shown} />);
  const { config, budgets } = app;
  await config.reload();
  const patch = await withCountedBudgets(change.patch, config, budgets, app.now());
  // It was saved already.
  if (Bun.deepEquals(patched(config.stored, patch), config.stored)) return redirect("/admin/config?unchanged=1");
  try {
    await config.change(patch, { revision: change.revision });
  } catch (thrown) {
    return again(asProxyError(thrown), { app, frame }, shown);
  }
  return redirect(`/admin/config?saved=${Object.keys(patch).join(",")}`);
}

const again = (fault: ProxyError, context: Pick<OwnerContext, "app" | "frame">, form: URLSearchParams) =>
  html(<Form context={context} form={form} fault={fault} />, fault.status);

/** The form without new secrets, which are never sent back to the browser and have to be typed again. */
function withoutSecrets(form: URLSearchParams): URLSearchParams {
  const shown = new URLSearchParams(form);
  const isMasked = (line: string) => line.trim() === "" || line.startsWith("…");
  for (const { name, kind, schema } of fields) {
    if (schema.secret) shown.set(name, (form.get(name) ?? "").split(/\r?\n/).filter(isMasked).join("\n"));
    if (kind !== "entries") continue;
    for (let at = 0; at < entriesIn(form, name); at += 1)
      for (const [member, { secret }] of Object.entries(membersOf(schema)))
        if (secret && !isMasked(form.get(`${name}.${at}.${member}`) ?? "")) shown.set(`${name}.${at}.${member}`, "");
  }
  return shown;
}

interface FormProps {
  context: Pick<OwnerContext, "app" | "frame">;
  form: URLSearchParams;
  fault?: ProxyError;
  saved?: string[];
  unchanged?: boolean;
}

function Form({ context: { app, frame }, form, fault, saved = [], unchanged }: FormProps): Markup {
  const { stored, waiting, fault: fileFault } = app.config;
  const written = underBothNames(stored);
  return (
    <Page frame={frame} title="Config" current="/admin/config">
      <p class="lead">
        {app.team ? (
          "Saved in the database, for all servers."
        ) : (
          <>
            Saved in <code>config.json</code>.
          </>
        )}{" "}
        Changes are shown for review, then apply at once.
      </p>
      {saved.length > 0 && (
        <p class="note good" role="status">
          Saved: {saved.join(", ")}.
        </p>
      )}
      {unchanged && (
        <p class="note info" role="status">
          No changes to save.
        </p>
      )}
      {fault && <FailureNote what="The changes were not saved." why={fault.message} />}
      {fileFault && (
        <p class="note bad">
          <strong>The config is not valid.</strong> {fileFault} The previous config stays in effect.
        </p>
      )}
      {waiting.length > 0 && (
        <p class="note info">Restart dragoman to apply changes in the config file: {waiting.join(", ")}.</p>
      )}
      <form method="post" action="/admin/config" class="config" autocomplete="off">
        <FormTokenInput frame={frame} />
        <input type="hidden" name={shownName} value={form.get(shownName) ?? ""} />
        <div class="sections">
          {Object.entries(sections).map(([id, title]) => {
            const shown = fields.filter(({ schema }) => schema.section === id);
            const isSet = ({ path, schema }: Field) => {
              const value = valueAt(written, path);
              return value !== undefined && !Bun.deepEquals(value, schema.default);
            };
            const faultOf = (field: Field) =>
              fault !== undefined && isAbout(fault.details.param, field) ? fault.message : undefined;
            return (
              <details class="card fold" open={shown.some((field) => faultOf(field) !== undefined)}>
                <summary>
                  <h2>{title}</h2>
                  {shown.some(isSet) && <span class="badge">{shown.filter(isSet).length} customized</span>}
                  {shown.length > 1 && (
                    <span class="soft">{shown.map(({ name, schema }) => schema.title ?? name).join(", ")}</span>
                  )}
                </summary>
                {/* A link to what is folded opens it. */}
                <fieldset id={id}>
                  <legend class="hidden">{title}</legend>
                  {shown.map((field) => (
                    <FieldRow
                      field={field}
                      form={form}
                      hasFile={app.team === undefined}
                      isSet={isSet(field)}
                      fault={faultOf(field)}
                    />
                  ))}
                </fieldset>
              </details>
            );
          })}
          <div class="actions">
            <button type="submit" class="primary">
              Review changes
            </button>
            <a href="/admin/config" class="button">
              Discard changes
            </a>
          </div>
        </div>
      </form>
    </Page>
  );
}

/** The sections of the form, in its order. */
const sections = {
  access: "Access",
  accounts: "Accounts",
  models: "Models",
  requests: "Requests",
  search: "Web search",
  "claude-code": "Claude Code",
  providers: "Providers",
  budgets: "Budgets",
  notices: "Notices",
  tokens: "Token counts",
  history: "History and logs",
};

const isAbout = (param: string | undefined, { name }: Field) =>
  param !== undefined && (param === name || param.startsWith(`${name}.`) || param.startsWith(`${name}[`));
