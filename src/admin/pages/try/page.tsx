/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The page Try: a prompt to any model in any dialect. Streaming needs a script; without one the page makes the command. */

import { clientDialects } from "../../../dialects/hub/conversation";
import { samples } from "../../../dialects/samples";
import { priceInWords } from "../../../lib/format";
import { withTimeLimit } from "../../../lib/net/time-limit";
import type { Scope } from "../../../parts/app";
import { type ClientKey, mayUse } from "../../../people/keys/client-keys";
import { exampleModels } from "../../../proxy/upstream/models/known-models";
import { type ModelItem, modelItems } from "../../api/models";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, Page } from "../../ui/layout";
import { Copy } from "../../ui/notes";
import type { PageContext } from "../../ui/page-context";
import { needsKeyIn } from "../connect/page";
import { keyOfVisitor } from "../visitor-key";
import { curlOf, readPrompt } from "./prompt";

export const tryPage = (context: PageContext): Promise<Markup> =>
  tryMarkup({ context, form: new URLSearchParams(context.url.search) });

/** The form's request as a command. */
export function curlFromPage(context: PageContext): Promise<Markup> {
  const { app, form, url } = context;
  const key = needsKeyIn(app) ? "YOUR_CLIENT_KEY" : undefined;
  return tryMarkup({ context, form, curl: curlOf(readPrompt(form), url.origin, key) });
}

interface TryProps {
  context: PageContext;
  /** What was entered. */
  form: URLSearchParams;
  curl?: string;
}

async function tryMarkup({ context, form, curl }: TryProps): Promise<Markup> {
  const { app, frame } = context;
  const key = keyOfVisitor(context);
  const models = await chatModels(app, key);
  return (
    <Page frame={frame} title="Try" current="/admin/try">
      <p class="lead">
        Send a prompt to a model, as a client would. It uses your accounts
        {key && (
          <>
            {" "}
            and the key <code>{key.name}</code>,
          </>
        )}{" "}
        and is charged like any request. Only its row in the history is kept.
      </p>
      {app.accounts.length === 0 && models.length === 0 && (
        <p class="note info">
          No account is signed in, so there is no model to try yet. <a href="/admin/accounts#add">Sign in</a> first.
        </p>
      )}
      <noscript>
        <p class="note info">
          This page needs a script to show an answer as it arrives. Without one it makes the command for your terminal.
        </p>
      </noscript>
      <PromptForm context={context} form={form} models={models} />
      <Answer curl={curl} />
      <script type="module" src={`/admin/assets/try.js?${frame.assets}`}></script>
    </Page>
  );
}

function PromptForm({ context, form, models }: Omit<TryProps, "curl"> & { models: ModelItem[] }): Markup {
  const value = (name: string, usual = "") => form.get(name) ?? usual;
  const dialect = value("dialect", "messages");
  return (
    <form method="post" action="/admin/try" class="try" id="try" data-send="/admin/try/send" autocomplete="off">
      <FormTokenInput frame={context.frame} />
      <div class="try-options">
        <Labelled name="model" label="Model">
          <ModelField models={models} chosen={form.get("model")} />
        </Labelled>
        <Labelled name="dialect" label="API">
          <select id="f-dialect" name="dialect">
            {clientDialects.map((each) => (
              <option
                value={each}
                selected={each === dialect}
                data-texts={JSON.stringify(samples[each].texts)}
              >{`${samples[each].name} (${each})`}</option>
            ))}
          </select>
        </Labelled>
        <Labelled name="max_tokens" label="Maximum output tokens">
          <input
            id="f-max_tokens"
            name="max_tokens"
            type="number"
            min="1"
            max="1000000"
            required
            value={value("max_tokens", "1024")}
          />
        </Labelled>
      </div>
      <Labelled name="system" label="Instructions for the model">
        <textarea id="f-system" name="system" rows="2">
          {value("system")}
        </textarea>
      </Labelled>
      <Labelled name="prompt" label="Prompt">
        <textarea id="f-prompt" name="prompt" rows="6" required aria-describedby="f-prompt-about">
          {value("prompt", "Hello! Who are you?")}
        </textarea>
        <p id="f-prompt-about" class="about" hidden data-with-script>
          Ctrl+Enter or ⌘+Enter sends it.
        </p>
      </Labelled>
      <div class="actions">
        <button type="submit" class={models.length > 0 ? "primary" : undefined} data-named="Send">
          Make the command
        </button>
        <button type="button" id="try-stop" hidden>
          Stop
        </button>
      </div>
    </form>
  );
}

/** Empty until a script has sent the form; the command, if it was made. */
const Answer = ({ curl }: { curl: string | undefined }) => (
  <>
    <p id="try-status" role="status" class="soft"></p>
    <section id="try-answer" class="card answer" aria-labelledby="answer" hidden>
      <h2 id="answer">Answer</h2>
      <details id="try-thinking" hidden>
        <summary>Thinking</summary>
        <pre class="wrapped"></pre>
      </details>
      <pre id="try-text" class="wrapped"></pre>
      <details>
        <summary>The stream as it arrived</summary>
        <pre id="try-raw" class="wrapped"></pre>
      </details>
    </section>
    <div id="try-row"></div>
    <section id="try-curl" class="card" aria-labelledby="curl" hidden={curl === undefined}>
      <h2 id="curl">The same with curl</h2>
      <div class="code">
        <pre id="curl-text">{curl}</pre>
        <Copy of="curl-text" quiet />
      </div>
    </section>
  </>
);

const Labelled = ({ name, label, children }: { name: string; label: string; children?: Child }) => (
  <div class="field">
    <label for={`f-${name}`}>{label}</label>
    {children}
  </div>
);

function ModelField({ models, chosen }: { models: ModelItem[]; chosen: string | null }): Markup {
  if (models.length === 0)
    return (
      <input
        id="f-model"
        name="model"
        required
        spellcheck="false"
        value={chosen ?? ""}
        placeholder={exampleModels.small}
      />
    );
  const usual = models.find(isFree) ?? cheapestSmall(models) ?? models[0];
  const wanted = models.find(({ id }) => id === chosen) ?? usual;
  return (
    <select id="f-model" name="model">
      {models.map((model) => (
        <option value={model.id} selected={model === wanted}>{`${model.id} · ${priceInWords(model.price)}`}</option>
      ))}
    </select>
  );
}

/** Of known price in AI credits. */
function cheapestSmall(models: ModelItem[]): ModelItem | undefined {
  const priced = models.flatMap((model) => {
    const { tokens } = model.price;
    return model.lightweight && tokens ? [{ model, input: tokens.input / tokens.per }] : [];
  });
  return priced.toSorted((one, other) => one.input - other.input)[0]?.model;
}

const isFree = ({ price, provider }: ModelItem) => provider === null && !price.premium;

/** Those that answer prompts and may be used, with this key too; none if the list takes longer than two seconds. */
async function chatModels(app: Scope, key: ClientKey | undefined): Promise<ModelItem[]> {
  const models = await withTimeLimit<ModelItem[], ModelItem[]>(
    modelItems(app).catch(() => []),
    2_000,
    () => [],
  );
  return models.filter(({ id, kind, enabled }) => kind === "chat" && enabled && mayUse(key, id));
}
