/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What the buttons of an account do, and the form for an App. */
import { addApp, newAppSchema } from "../../api/account-actions";
import { Sentence, Value } from "../../ui/format";
import { type OwnerContext, type PageContext, redirect } from "../../ui/page-context";
import type { StreamedPage } from "../../ui/streamed-page";
import { accountsPage } from "./page";

const toAccounts = () => redirect("/admin/accounts");
const keyIn = (form: URLSearchParams) => form.get("account_key") ?? "";

export async function pauseFromPage({ app, form }: PageContext): Promise<Response> {
  await app.ownAccounts.pause(keyIn(form), form.get("paused") === "1");
  return toAccounts();
}

export async function moveFromPage({ app, form }: PageContext): Promise<Response> {
  await app.ownAccounts.move(keyIn(form), form.get("by") === "1" ? 1 : -1);
  return toAccounts();
}

export async function removeFromPage(context: PageContext): Promise<StreamedPage> {
  const key = keyIn(context.form);
  const revokeAt = await context.app.ownAccounts.remove(key);
  return accountsPage(
    context,
    <section class="note good" role="status">
      <h2>
        <Value of={key} /> was removed
      </h2>
      <p>
        Its token is deleted here, and still valid at GitHub. To revoke it there too, open{" "}
        <a href={revokeAt} rel="noreferrer" target="_blank">
          {revokeAt}
        </a>
        .
      </p>
    </section>,
  );
}

export async function addAppFromPage(context: OwnerContext): Promise<StreamedPage> {
  const { app, form } = context;
  const given = (name: string) => form.get(name)?.trim() || undefined;
  const added = await addApp(
    app,
    newAppSchema.parse({
      host: given("app_host")?.toLowerCase(),
      app: given("app_id") ?? "",
      installation: given("installation") ?? "",
      repository: given("repository"),
      private_key: given("private_key") ?? "",
    }),
  );
  return accountsPage(
    context,
    <section class={`note ${added.reason === null ? "good" : "bad"}`} role="status">
      <h2>
        The App is signed in for <Value of={added.account_id} />
      </h2>
      <p>
        {added.reason === null ? (
          "It is ready."
        ) : (
          <Sentence of={`It is saved, but cannot be used yet. ${added.reason}`} />
        )}
      </p>
    </section>,
  );
}
