/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The client keys: who may call, with a form that creates a key and a button that revokes one. */
import { plural } from "../../../lib/format";
import { parseInput } from "../../../lib/input";
import { type KeyItem, type KeyList, meaningOfLastKey } from "../../../people/keys/key-list";
import { newKeySchema } from "../../../people/keys/stored-keys";
import { createClientKey, listKeys, revokeClientKey } from "../../api/keys";
import { TextField, wordsIn } from "../../ui/form-fields";
import { Value } from "../../ui/format";
import { CardForm, ConfirmButton } from "../../ui/forms";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { type Frame, Page } from "../../ui/layout";
import { withQuery } from "../../ui/links";
import { Empty } from "../../ui/lists";
import { FailureNote, ShownOnce } from "../../ui/notes";
import { orShownAgain, type PageContext, redirect } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { keyOfVisitor } from "../visitor-key";
import { KeyTable, keyIsRefused } from "./table";
import { usesOfKeys } from "./uses";

export const keysPage = (context: PageContext): Promise<StreamedPage> => streamed({ context });

/** Creates a key and shows it, this once. */
export function createFromPage(context: PageContext): Promise<StreamedPage | Response> {
  const { app, form } = context;
  return orShownAgain(
    async () => {
      const { name, key } = await createClientKey(app, readNewKey(form), keyOfVisitor(context));
      return streamed({
        context,
        children: (
          <section class="note good" role="status">
            <h2>The key “{name}” was created</h2>
            <p>Copy it now. Only its hash is stored, so it cannot be shown again.</p>
            <ShownOnce id="new-key" text={key} />
          </section>
        ),
      });
    },
    async (why) => {
      const list = await listKeys(app);
      return (
        <KeysMarkup context={context} form={form} list={list} table={await tableOf(context, list)}>
          <FailureNote what="No key was created." why={why} />
        </KeysMarkup>
      );
    },
  );
}

/** Handles the "Revoke" button. Where the sign-in ends with the key, the page that follows says so. */
export async function revokeFromPage({ app, form }: PageContext): Promise<Response> {
  const name = form.get("name") ?? "";
  await revokeClientKey(app, name);
  return redirect(withQuery("/admin/keys", { revoked: name }));
}

/** @throws ProxyError `invalid_request`. */
function readNewKey(form: URLSearchParams) {
  const text = (name: string) => (form.get(name) ?? "").trim();
  const models = wordsIn(text("models"));
  const sent = {
    name: text("name"),
    ...(models.length > 0 && { models }),
    ...(text("expires_at") !== "" && { expires_at: text("expires_at") }),
  };
  return parseInput(sent, newKeySchema);
}

interface KeysProps {
  context: PageContext;
  /** The values to show in the form again. */
  form?: URLSearchParams;
  /** What came of the last action. */
  children?: Child;
}

/** What a month of requests adds up to is not waited for. */
async function streamed(props: KeysProps): Promise<StreamedPage> {
  const list = await listKeys(props.context.app);
  return {
    page: <KeysMarkup {...props} list={list} table={slot} />,
    parts: [() => tableOf(props.context, list)],
  };
}

async function tableOf({ app, frame, pageSignIn }: PageContext, list: KeyList): Promise<Markup> {
  const { items, limits, required } = list;
  if (items.length === 0) return <NoKeys required={required} served={list.served_without} />;
  return (
    <KeyTable
      caption="Client keys"
      keys={items}
      now={app.now()}
      allModels={limits?.models ? "All of yours" : "All"}
      current={pageSignIn?.keyName}
      use={await usesOfKeys(app, items)}
      action={(key) => <KeyAction frame={frame} item={key} list={list} current={pageSignIn?.keyName} />}
    />
  );
}

function KeysMarkup({
  context: { frame, url },
  form = new URLSearchParams(),
  list,
  table,
  children,
}: KeysProps & { list: KeyList; table: Markup }): Markup {
  const { items, limits, required, from_environment: fromEnvironment } = list;
  const revoked = url.searchParams.get("revoked");
  return (
    <Page frame={frame} title="Keys" current="/admin/keys">
      {limits === null ? (
        <p class="lead">
          Client keys say which tool or person may call dragoman, and whose requests are whose. Requests, statistics and
          exports show the name of a key, never the key.
        </p>
      ) : (
        <MemberLead limits={limits} />
      )}
      {children}
      {revoked !== null && items.every(({ name }) => name !== revoked) && (
        <div class="note good" role="status">
          There is no key <Value of={revoked} max={127} /> any more: it was revoked, and{" "}
          {required ? "its next request is refused." : "clients need no key now."}
        </div>
      )}
      {!required && items.length > 0 && (
        <p class="note">These keys are made up for the demo, as its history is. Clients need no key here.</p>
      )}
      {table}
      {fromEnvironment && (
        <p class="note">
          The only key is the one in <code>DRAGOMAN_API_KEY</code>. The first key that you create here replaces it.
        </p>
      )}
      <NewKeyForm frame={frame} form={form} isFirst={!required} limits={limits} />
    </Page>
  );
}

type Limits = NonNullable<KeyList["limits"]>;

const MemberLead = ({ limits: { models, key_days, max_keys } }: { limits: Limits }) => (
  <>
    <p class="lead">
      Your keys, for your own tools and machines: all of them use your accounts, and whoever has one can do so. With any
      of them you sign in here. You may have {max_keys} at a time.
    </p>
    {(models !== null || key_days !== null) && (
      <p class="note">
        The owner has set limits for your keys:{" "}
        {models !== null && (
          <>
            models <Value of={models.join(", ")} max={400} />
          </>
        )}
        {models !== null && key_days !== null && "; "}
        {key_days !== null && `each key expires ${plural(key_days, "day")} after it was made`}.
      </p>
    )}
  </>
);

const NoKeys = ({ required, served }: { required: boolean; served: KeyList["served_without"] }) => (
  <Empty title={required ? "You have no key" : "Clients need no key"}>{whoIsServed[served]}</Empty>
);

const whoIsServed = {
  others: "Members have keys of their own, so every client must send one. Create one for your own clients.",
  nobody: "Nobody is served: other machines reach dragoman, so every client must send a key. Create one.",
  anyone: "Every program that can reach dragoman may use it. By default, only programs on this machine can.",
};

interface KeyActionProps {
  frame: Frame;
  item: KeyItem;
  /** All that the person has. */
  list: KeyList;
  /** The name of the key that began the sign-in. */
  current: string | undefined;
}

function KeyAction({ frame, item, list, current }: KeyActionProps): Markup {
  const { items: keys, served_without } = list;
  if (item.name === null) return <a href="/admin/config">Edit the config</a>;
  const meaning = keys.length === 1 ? meaningOfLastKey(served_without) : undefined;
  const isOwn = !meaning && item.name === current;
  const isLast = keys.every((each) => each === item || each.expired);
  return (
    <ConfirmButton frame={frame} to="/admin/keys/revoke" fields={{ name: item.name }} words="Revoke" name={item.name}>
      {isOwn ? (
        <>
          You signed in with this key, so you are signed out with it.{" "}
          {isLast && "You have no other key: to come back you need a new invitation link from the owner."}
        </>
      ) : (
        (meaning ?? keyIsRefused)
      )}
    </ConfirmButton>
  );
}

interface NewKeyProps {
  frame: Frame;
  form: URLSearchParams;
  isFirst: boolean;
  limits: Limits | null;
}

const NewKeyForm = ({ frame, form, isFirst, limits }: NewKeyProps) => (
  <CardForm frame={frame} to="/admin/keys" title="New key" submit="Create key">
    {isFirst && <p class="about">From the first key on, every client must send a key.</p>}
    <TextField name="name" label="Name" value={form.get("name")} required>
      {limits === null
        ? "The tool or person that uses the key, such as “laptop” or “anna”."
        : "The tool or machine that uses the key, such as “laptop”."}
    </TextField>
    <TextField name="models" label="Models" value={form.get("models")}>
      Ids, separated by spaces; <code>*</code> stands for any text, as in <code>gpt-*</code>. Empty for all
      {limits?.models ? " that you may use." : " models."}
    </TextField>
    <TextField name="expires_at" label="Expires" value={form.get("expires_at")} type="date">
      The key expires at the beginning of this day (UTC). Empty for{" "}
      {limits?.key_days ? `${plural(limits.key_days, "day")} from now.` : "never."}
    </TextField>
  </CardForm>
);
