/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Setup instructions for each client, filled in with this address, and when the client was last seen. */

import type { Group } from "../../../books/history/history";
import type { Client, Connection, Snippet } from "../../../clients/client";
import { type ClientId, clientIds, clientOf, snippetsOf } from "../../../clients/index";
import { type Choice, chooseModels, unknownModels, withoutOthers } from "../../../clients/models";
import { asProxyError, ProxyError } from "../../../lib/errors";
import { withTimeLimit } from "../../../lib/net/time-limit";
import type { Scope } from "../../../parts/app";
import { matchesAny } from "../../../people/keys/client-keys";
import { allModels } from "../../../proxy/upstream/models/all-models";
import type { Model } from "../../../proxy/upstream/models/model";
import { ownClientModels } from "../../../proxy/upstream/models/model-view";
import { createClientKey } from "../../api/keys";
import { modelsAllowed } from "../../api/models";
import { Ago, Sentence, Value } from "../../ui/format";
import { ActionButton } from "../../ui/forms";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { type Frame, Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Picker } from "../../ui/lists";
import { Copy } from "../../ui/notes";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { keyOfVisitor } from "../visitor-key";

/** A key that was just made for a tool. It is shown this once. */
interface MadeKey {
  tool: ClientId;
  name: string;
  key: string;
}

/** Makes a key for the tool of the form, and shows the tool's instructions with it. */
export async function keyFromPage(context: PageContext): Promise<StreamedPage> {
  const tool = clientIds.find((id) => id === context.form.get("tool"));
  if (!tool) throw new ProxyError("not_found", "There are no instructions for such a tool.");
  return connectPage(context, { tool, ...(await createFor(tool, context)) });
}

/** A key with the tool's name, or with the first number behind it that is free. */
async function createFor(tool: ClientId, context: PageContext, number = 1): Promise<{ name: string; key: string }> {
  const name = number === 1 ? tool : `${tool}-${number}`;
  try {
    return await createClientKey(context.app, { name }, keyOfVisitor(context));
  } catch (thrown) {
    if (asProxyError(thrown).kind !== "conflict" || number > 50) throw thrown;
    return createFor(tool, context, number + 1);
  }
}

export function connectPage({ app, frame, url }: PageContext, made?: MadeKey): StreamedPage {
  const isOwner = app.owner !== undefined;
  const needsKey = needsKeyIn(app);
  return {
    page: (
      <Page frame={frame} title="Connect" current="/admin/connect">
        <p class="lead">
          Set the base URL of your client to <code>{url.origin}</code>
          {needsKey ? (
            <>
              {" "}
              and replace <code>{keyPlaceholder}</code> with one of your client keys, or create one for the tool.
            </>
          ) : (
            <>. No API key is required. If your client asks for one, enter any text.</>
          )}{" "}
          Files that list models show only a few of them here
          {isOwner ? (
            <>
              ; <code>dragoman connect</code> lists all.
            </>
          ) : (
            <>
              ; the page <a href="/admin/models">Models</a> lists all.
            </>
          )}
        </p>
        {slot}
      </Page>
    ),
    parts: [() => cards({ app, frame }, { url: url.origin, key: needsKey ? keyPlaceholder : undefined }, made)],
  };
}

/** Whether clients must send a key. Members always do. */
export const needsKeyIn = ({ owner }: Scope): boolean => owner?.requiresKey ?? true;

const keyPlaceholder = "YOUR_CLIENT_KEY";

/** Only the owner may run the command, on the machine where dragoman runs; it knows no other address. */
async function cards(
  { app, frame }: Pick<PageContext, "app" | "frame">,
  { url, key }: Pick<Connection, "url" | "key">,
  made: MadeKey | undefined,
): Promise<Markup> {
  const now = app.now();
  const [choice, { groups }] = await Promise.all([choiceSoon(app), app.history.statistics({}, ["client_name"])]);
  const tools = clientIds.map((id) => {
    const seen = groups.filter(({ key }) => clientOf(id).known.test(key.client_name ?? ""));
    return { id, seen, count: seen.reduce((sum, { request_count }) => sum + request_count, 0) };
  });
  // Tools that are in use come first.
  tools.sort((one, other) => other.count - one.count);
  return (
    <>
      {!choice && (
        <p class="note info">
          {app.accounts.length === 0 ? (
            <>
              No account is signed in, so there are no models to choose from yet.{" "}
              <a href="/admin/accounts#add">Sign in</a> first, or replace
            </>
          ) : (
            <>The model list is unavailable. Replace</>
          )}{" "}
          <code>MODEL</code> with the name of a model.
        </p>
      )}
      <Picker label="Find a tool" among=".guide" placeholder="Claude Code, Zed, SDK …" />
      <div class="guides">
        {tools.map(({ id, seen }, at) => (
          <Guide
            id={id}
            client={clientOf(id)}
            frame={key !== undefined && made?.tool !== id ? frame : undefined}
            made={made?.tool === id ? made : undefined}
            place={{
              url,
              key: made?.tool === id ? made.key : key,
              models: choice ? withoutOthers(choice) : unknownModels,
            }}
            hasCommand={app.owner !== undefined}
            seen={seen}
            open={made ? made.tool === id : at === 0}
            now={now}
          />
        ))}
      </div>
    </>
  );
}

/** Undefined without a list, or when no model can serve an agent. */
async function choiceSoon(app: Scope): Promise<Choice | undefined> {
  const models = allModels(app, "cached").then(
    ({ models }) => models,
    (): Model[] => [],
  );
  const known = await withTimeLimit(models, 2_000, (): Model[] => []);
  const usable = known.filter(({ id }) => matchesAny(modelsAllowed(app), id));
  return chooseModels(ownClientModels(usable, app.config.current));
}

interface GuideProps {
  /** For the button that makes a key; missing where there is none to make. */
  frame: Frame | undefined;
  made: MadeKey | undefined;
  id: ClientId;
  client: Client;
  place: Connection;
  /** Whether `dragoman connect` can do it for the visitor. */
  hasCommand: boolean;
  seen: Group[];
  open: boolean;
  now: number;
}

function Guide({ id, frame, made, client, place, hasCommand, seen, open, now }: GuideProps): Markup {
  const { name, speaks } = client;
  const { note } = client.setUp(place);
  const last = Math.max(...seen.map(({ last_at_ms }) => last_at_ms ?? 0), 0);
  const newest = seen.find(({ last_at_ms }) => last_at_ms === last);
  return (
    <details class="card fold guide" name="tool" id={`guide-${id}`} open={open}>
      <summary>
        <h2>{name}</h2>
        {newest ? (
          <span class="badge good">
            Last seen <Ago at={last} now={now} />
          </span>
        ) : (
          <span class="badge idle">Not seen yet</span>
        )}
      </summary>
      <p class="soft">
        API: {speaks}
        {newest && (
          <>
            {" "}
            · last seen as{" "}
            <a href={requestsPath({ client_name: newest.key.client_name ?? null })}>
              <Value of={newest.key.client_name} max={30} />
            </a>
          </>
        )}
      </p>
      {hasCommand && client.file && (
        <p class="soft">
          <code>dragoman connect {id} --write</code> writes this to the client’s settings file and tests it;{" "}
          <code>--undo</code> reverts it.
        </p>
      )}
      {made && (
        <section class="note good" role="status">
          <h3>The key “{made.name}” was created</h3>
          <p>It stands below. Copy it now: only its hash is stored, so it cannot be shown again.</p>
        </section>
      )}
      {frame && (
        <ActionButton frame={frame} to="/admin/connect" fields={{ tool: id }}>
          Create a key for {name}
        </ActionButton>
      )}
      {snippetsOf(id, place).map((snippet, at) => (
        <SnippetBlock
          id={`${id}-${at}`}
          client={name}
          snippet={snippet}
          open={at === 0 && snippet.text.length < openBelow}
        />
      ))}
      {note && (
        <p class="soft">
          <Sentence of={note} />
        </p>
      )}
    </details>
  );
}

/** Characters. Longer snippets start collapsed. */
const openBelow = 1500;

const SnippetBlock = ({
  id,
  client,
  snippet,
  open,
}: {
  id: string;
  client: string;
  snippet: Snippet;
  open: boolean;
}) => (
  <details class="snippet" open={open}>
    <summary>{snippet.name}</summary>
    <div class="code">
      <pre id={id}>{snippet.text}</pre>
      <Copy of={id} label={`Copy for ${client}, ${snippet.name}`} quiet />
    </div>
  </details>
);
