/** @jsxRuntime automatic @jsxImportSource #jsx */
/** How each client is pointed here, filled in with this address, and whether it was seen. */
import type { App } from "../app";
import type { Group } from "../history/history";
import { Ago, plural, Value } from "./figures";
import type { Markup } from "./jsx/jsx-runtime";
import { Page } from "./layout";
import { requestsPath } from "./links";
import { listModels, type ModelItem } from "./models";
import { type SlowPage, slot } from "./slow";
import { type ClientGuide, guides, type Here, type Snippet } from "./snippets";
import type { Visit } from "./visit";

export function connectPage({ app, frame, url }: Visit): SlowPage {
  const needsKey = app.clientKeys.length > 0;
  return {
    page: (
      <Page frame={frame} title="Connect" current="/admin/connect">
        <p class="lead">
          Point a client at <code>{url.origin}</code>
          {needsKey ? (
            <>
              , with one of your {plural(app.clientKeys.length, "client key")} in the place of <code>{keyPlace}</code>.
            </>
          ) : (
            <>. No key is asked for on this machine; most clients want one all the same, so any word does.</>
          )}
        </p>
        {slot}
      </Page>
    ),
    parts: [() => cards(app, url.origin, needsKey ? keyPlace : "unused")],
  };
}

const keyPlace = "YOUR_CLIENT_KEY";

async function cards(app: App, url: string, key: string): Promise<Markup> {
  const now = app.now();
  const [models, { groups }] = await Promise.all([modelsSoon(app), app.history.statistics({}, ["client_name"])]);
  return (
    <>
      {models.length === 0 && (
        <p class="note info">
          The model list cannot be had now, so <code>MODEL</code> stands in its place.
        </p>
      )}
      <div class="guides">
        {guides({ url, key, ...modelsFor(models) }).map((guide) => (
          <Guide
            guide={guide}
            seen={groups.filter(({ key: { client_name } }) => guide.known.test(client_name ?? ""))}
            now={now}
          />
        ))}
      </div>
    </>
  );
}

async function modelsSoon(app: App): Promise<ModelItem[]> {
  let timer: Timer | undefined;
  const late = new Promise<ModelItem[]>((resolve) => {
    timer = setTimeout(resolve, 2_000, []);
  });
  return Promise.race([listModels(app).catch(() => []), late]).finally(() => clearTimeout(timer));
}

/** One of each family that is offered and can do most: the first that fits, as the upstream lists them. */
function modelsFor(models: ModelItem[]): Pick<Here, "claude" | "gpt" | "chat"> {
  const usable = models.filter(({ enabled, kind, id }) => enabled && kind === "chat" && /^[\w.:/-]+$/.test(id));
  const find = (endpoint: string, ...wanted: RegExp[]) => {
    const able = usable.filter(({ endpoints }) => endpoints.includes(endpoint));
    return (wanted.flatMap((each) => able.find(({ id }) => each.test(id)) ?? [])[0] ?? able[0])?.id;
  };
  const any = usable[0]?.id ?? "MODEL";
  return {
    claude: find("/v1/messages", /sonnet/i, /claude/i) ?? any,
    gpt: find("/responses", /^gpt/i) ?? any,
    chat: find("/chat/completions", /^gpt.*mini/i, /^gpt/i) ?? any,
  };
}

function Guide({ guide, seen, now }: { guide: ClientGuide; seen: Group[]; now: number }): Markup {
  const { id, name, dialect, snippets, note } = guide;
  const last = Math.max(...seen.map(({ last_at_ms }) => last_at_ms ?? 0), 0);
  const newest = seen.find(({ last_at_ms }) => last_at_ms === last);
  return (
    <article class="card guide" aria-labelledby={`guide-${id}`}>
      <header>
        <h2 id={`guide-${id}`}>{name}</h2>
        {newest ? (
          <a class="badge good" href={requestsPath({ client_name: newest.key.client_name ?? null })}>
            seen <Ago at={last} now={now} />
          </a>
        ) : (
          <span class="badge idle">not seen yet</span>
        )}
      </header>
      <p class="soft">
        speaks {dialect}
        {newest && (
          <>
            {" "}
            · last as <Value of={newest.key.client_name} most={30} />
          </>
        )}
      </p>
      {snippets.map((snippet, at) => (
        <SnippetBlock id={`${id}-${at}`} client={name} snippet={snippet} open={at === 0} />
      ))}
      {note && <p class="soft">{note}</p>}
    </article>
  );
}

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
      <button type="button" class="quiet" data-copy={id} hidden aria-label={`Copy for ${client}, ${snippet.name}`}>
        Copy
      </button>
    </div>
  </details>
);
