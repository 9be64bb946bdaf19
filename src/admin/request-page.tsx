/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One exchange: its way from the client to an upstream and back, what was changed, and what it cost. */
import type { App } from "../app";
import { ProxyError } from "../errors";
import { Stretch } from "./chart";
import {
  Count,
  clock,
  count,
  credits,
  Duration,
  day,
  dollars,
  duration,
  Moment,
  Sentence,
  significant,
  Unknown,
  units,
  Value,
} from "./figures";
import type { Child, Markup } from "./jsx/jsx-runtime";
import { FormToken, type Frame, Page } from "./layout";
import { requestPath, requestsPath } from "./links";
import { mendInWords } from "./mends";
import type { ModelItem } from "./models";
import { listModels } from "./models";
import { Status } from "./request-rows";
import { type Attempt, findRequest, type ShownEntry, type ShownRunning } from "./requests";
import { type SlowPage, slot } from "./slow";
import { redirect, type Visit } from "./visit";

export function requestPage({ app, frame, params }: Visit): Markup | SlowPage {
  const found = findRequest(app, params.id ?? "");
  if (!found)
    throw new ProxyError(
      "not_found",
      "No request with this id is remembered: it may be older than the history goes back, or was never one of ours.",
    );
  if (found.running) return <RunningPage item={found.item} frame={frame} now={app.now()} />;
  const { item } = found;
  const now = app.now();
  return {
    page: (
      <Page
        frame={frame}
        title="Request"
        current="/admin/requests"
        aside={
          <p class="under">
            <Value of={item.upstream_model ?? item.client_model} /> ·{" "}
            <Moment at={item.started_at_ms} now={now} seconds={true} /> · <Status item={item} />
          </p>
        }
      >
        {item.error_type !== null && (
          <section class="note bad" aria-label="Why it failed">
            <h2>
              <Value of={item.error_type} />
            </h2>
            <p>
              <Sentence of={item.error_message ?? "No reason was given."} />
            </p>
          </section>
        )}
        <div class="columns">
          <section class="card" aria-labelledby="way">
            <h2 id="way">Its way</h2>
            <Timeline item={item} />
          </section>
          <div>
            <section class="card" aria-labelledby="cost">
              <h2 id="cost">What it used</h2>
              {slot}
            </section>
            <Changes mends={item.mends} dropped={item.dropped} />
            <Ids item={item} now={now} />
          </div>
        </div>
      </Page>
    ),
    parts: [async () => <Use item={item} model={await modelSoon(app, item.upstream_model)} />],
  };
}

export function cancelRequest({ app, params }: Visit): Response {
  const id = params.id ?? "";
  if (!app.live.cancel(id))
    throw new ProxyError("not_found", "No request with this id is running: it may have just ended.");
  return redirect(requestPath(id));
}

// ── Its way ──

interface Step {
  name: string;
  at?: number;
  from?: number;
  to?: number;
  tone?: string;
  told: Child;
}

function Timeline({ item }: { item: ShownEntry }): Markup {
  const whole = Math.max(item.duration_ms, 1);
  return (
    <ol class="timeline">
      {stepsOf(item).map(({ name, from = 0, to = from, at, tone, told }) => (
        <li class={tone}>
          <div class="step">
            <strong>{name}</strong>
            {at !== undefined && (
              <span class="num soft">{at === 0 ? clock(item.started_at_ms, true) : `+ ${duration(at)}`}</span>
            )}
          </div>
          {to > from && <Stretch from={from} to={to} whole={whole} tone={tone} />}
          <div class="told">{told}</div>
        </li>
      ))}
    </ol>
  );
}

function stepsOf(item: ShownEntry): Step[] {
  const { duration_ms: whole, first_byte_ms: first } = item;
  return [
    {
      name: "Received",
      at: 0,
      told: (
        <>
          <Value of={item.client_name} /> asked for <Value of={item.client_model} /> at{" "}
          <code>{item.path.slice(0, 200)}</code>, {item.stream ? "as a stream" : "as one answer"}.
        </>
      ),
    },
    { name: "Routed", told: <Routing item={item} /> },
    ...attemptsOf(item.attempts),
    ...(first === null
      ? []
      : [
          {
            name: "First byte",
            at: first,
            from: first,
            to: whole,
            tone: "flow",
            told: `The answer took ${duration(Math.max(0, whole - first))}.`,
          },
        ]),
    {
      name: "End",
      at: whole,
      from: whole,
      tone: item.error_type === null ? "good" : "bad",
      told: (
        <>
          <Status item={item} />
          {item.error_type === null && item.stop_reason === null && " The upstream gave no reason for its end."}
        </>
      ),
    },
  ];
}

/** Each begins where the one before it ended; what lies between them is not known. */
function attemptsOf(attempts: Attempt[]): Step[] {
  let from = 0;
  return attempts.map(({ account, status, error, ms }, at) => {
    const step = {
      name: attempts.length === 1 ? "Attempt" : `Attempt ${at + 1}`,
      at: from === 0 ? undefined : from,
      from,
      to: from + ms,
      tone: status !== undefined && status < 400 ? "good" : "bad",
      told: (
        <>
          {account === null ? "the provider" : <Value of={account} />} answered{" "}
          {status ?? <Value of={error ?? "nothing"} />} after {duration(ms)}.
        </>
      ),
    };
    from += ms;
    return step;
  });
}

function Routing({ item }: { item: ShownEntry }): Markup {
  const { client_dialect, upstream_dialect, upstream_endpoint, upstream_model, initiator, initiator_reason } = item;
  if (upstream_endpoint === null) return <>Nowhere: it ended before an upstream was chosen.</>;
  const translated = upstream_dialect !== null && upstream_dialect !== client_dialect;
  return (
    <>
      To <code>{upstream_endpoint}</code>, model <Value of={upstream_model} />;{" "}
      {translated
        ? `translated from ${client_dialect} to ${upstream_dialect}, as the model does not speak ${client_dialect}`
        : "passed through in the client’s own dialect"}
      .
      {initiator !== null && (
        <>
          {" "}
          Counted as <Value of={initiator} />: <Value of={initiator_reason ?? "no reason was kept"} most={120} />.
        </>
      )}
    </>
  );
}

// ── What was changed ──

function Changes({ mends, dropped }: { mends: string[]; dropped: string[] }): Markup {
  return (
    <section class="card" aria-labelledby="changes">
      <h2 id="changes">What was changed on the way</h2>
      {mends.length === 0 && dropped.length === 0 && (
        <p class="soft">Nothing: the request and its answer went through as they were.</p>
      )}
      {mends.length > 0 && (
        <dl class="mends">
          {mends.map((name) => (
            <div>
              <dt>
                <code>{name.slice(0, 80)}</code>
              </dt>
              <dd>{mendInWords(name) ?? "An edit of this name; there are no more words for it."}</dd>
            </div>
          ))}
        </dl>
      )}
      {dropped.length > 0 && (
        <>
          <h3>Left out or changed, as the upstream cannot take it</h3>
          <ul class="plain-list">
            {dropped.map((name) => (
              <li>
                <code>{name.slice(0, 120)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

// ── What it cost ──

/** The catalogue is asked of the upstream now and then: a page does not wait for that. */
async function modelSoon(app: App, id: string | null): Promise<ModelItem | undefined> {
  if (id === null) return undefined;
  let timer: Timer | undefined;
  const late = new Promise<ModelItem[]>((resolve) => {
    timer = setTimeout(resolve, 1_000, []);
  });
  const models = await Promise.race([listModels(app).catch(() => []), late]).finally(() => clearTimeout(timer));
  return models.find((model) => model.id === id);
}

interface Line {
  name: string;
  tokens: number | null;
  /** AI credits for a million tokens. */
  rate?: number;
}

function Use({ item, model }: { item: ShownEntry; model: ModelItem | undefined }): Markup {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens, nano_credits, premium_units } = item;
  const price = model?.price;
  const long = price?.long && input_tokens !== null && input_tokens > price.long.above ? price.long : undefined;
  const rate = price?.tokens ? (long ?? price.tokens) : undefined;
  const million = price?.tokens ? 1_000_000 / price.tokens.per : 1;
  const cached = cached_tokens ?? 0;
  const written = cache_write_tokens ?? 0;
  const lines: Line[] = [
    {
      name: "Input",
      tokens: input_tokens === null ? null : Math.max(0, input_tokens - cached - written),
      rate: rate?.input,
    },
    { name: "Input from the cache", tokens: cached_tokens, rate: rate?.cached_input },
    { name: "Input written to the cache", tokens: cache_write_tokens, rate: rate?.cache_write },
    { name: "Output", tokens: output_tokens, rate: rate?.output },
  ].map((line) => ({ ...line, rate: line.rate === undefined ? undefined : line.rate * million }));
  const sum = lines.reduce((total, { tokens, rate }) => total + ((tokens ?? 0) * (rate ?? 0)) / 1e6, 0);
  const computed = Math.round(sum * 1e9);
  const differs =
    nano_credits !== null &&
    rate !== undefined &&
    rate !== null &&
    Math.abs(nano_credits - computed) > Math.max(10, computed / 1_000);
  return (
    <>
      <table class="bill">
        <caption class="hidden">Tokens and what they cost</caption>
        <thead>
          <tr>
            <th scope="col">Tokens</th>
            <th scope="col" class="right">
              Number
            </th>
            {rate && (
              <>
                <th scope="col" class="right">
                  Credits per 1M
                </th>
                <th scope="col" class="right">
                  Credits
                </th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ name, tokens, rate: each }) => (
            <tr>
              <th scope="row">{name}</th>
              <td class="right">
                <Count of={tokens} />
              </td>
              {each !== undefined && (
                <>
                  <td class="right num">{significant(each)}</td>
                  <td class="right num">{tokens === null ? <Unknown /> : significant((tokens * each) / 1e6)}</td>
                </>
              )}
            </tr>
          ))}
          {item.reasoning_tokens !== null && (
            <tr>
              <th scope="row">of the output, reasoning</th>
              <td class="right">
                <Count of={item.reasoning_tokens} />
              </td>
              {rate && <td colspan="2"></td>}
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colspan={rate ? 3 : 1}>
              AI credits {nano_credits !== null && <span class="soft">about {dollars(nano_credits)}</span>}
            </th>
            <td class="right num">{nano_credits === null ? <Unknown /> : credits(nano_credits)}</td>
          </tr>
          <tr>
            <th scope="row" colspan={rate ? 3 : 1}>
              Premium requests
            </th>
            <td class="right num">{premium_units === null ? <Unknown /> : units(premium_units)}</td>
          </tr>
        </tfoot>
      </table>
      {model && !rate && <p class="soft">The upstream lists no price by tokens for this model.</p>}
      {long && <p class="soft">Priced as a long prompt: it has more than {count(long.above)} tokens.</p>}
      {differs && (
        <p class="soft">
          The upstream’s own figure stands; by today’s list price it would be {credits(computed)} credits.
        </p>
      )}
      {item.tokens_estimated && <p class="soft">The tokens are an estimate: the upstream did not count them.</p>}
      {!model && item.upstream_model !== null && (
        <p class="soft">The price of this model is not known now, so there is no sum to compare with.</p>
      )}
    </>
  );
}

// ── The rest ──

function Ids({ item, now }: { item: ShownEntry; now: number }): Markup {
  const around = 5 * 60_000;
  return (
    <section class="card" aria-labelledby="ids">
      <h2 id="ids">To tell others, and to find more</h2>
      <dl class="pairs">
        <div>
          <dt>Request id</dt>
          <dd>
            <code id="request-id">{item.request_id}</code>{" "}
            <button type="button" class="quiet" data-copy="request-id" hidden>
              Copy
            </button>
          </dd>
        </div>
        <div>
          <dt>Row</dt>
          <dd>{item.id === undefined ? "not written yet" : count(item.id)}</dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>
            {day(item.started_at_ms, now)}, {clock(item.started_at_ms, true)}
          </dd>
        </div>
      </dl>
      <ul class="plain-list">
        <li>
          <a href={requestsPath({ from_ms: item.started_at_ms - around, to_ms: item.started_at_ms + around })}>
            What else happened five minutes before and after
          </a>
        </li>
        <li>
          <a href={requestsPath({ upstream_model: item.upstream_model })}>All requests of this model</a>
        </li>
        <li>
          <a href={requestsPath({ client_name: item.client_name })}>All requests of this client</a>
        </li>
        {item.error_type !== null && (
          <li>
            <a href={requestsPath({ has_error: true })}>All that failed</a>
          </li>
        )}
      </ul>
    </section>
  );
}

function RunningPage({ item, frame, now }: { item: ShownRunning; frame: Frame; now: number }): Markup {
  return (
    <Page frame={frame} title="Request" current="/admin/requests" aside={<span class="badge busy">running</span>}>
      <noscript>
        <meta http-equiv="refresh" content="5" />
      </noscript>
      <div id="live" data-follow="/admin/requests/live">
        <section class="card">
          <h2>It is running</h2>
          <dl class="pairs">
            <div>
              <dt>For</dt>
              <dd>
                <Duration of={Math.max(0, now - item.started_at_ms)} />
              </dd>
            </div>
            <div>
              <dt>Client</dt>
              <dd>
                <Value of={item.client_name} /> at <code>{item.path.slice(0, 200)}</code>
              </dd>
            </div>
            <div>
              <dt>Model</dt>
              <dd>
                <Value of={item.upstream_model ?? item.client_model} />
              </dd>
            </div>
            <div>
              <dt>Account</dt>
              <dd>{item.account_id === null ? "none yet" : <Value of={item.account_id} />}</dd>
            </div>
            <div>
              <dt>First byte</dt>
              <dd>{item.first_byte_ms === null ? "not yet" : `after ${duration(item.first_byte_ms)}`}</dd>
            </div>
          </dl>
          <form method="post" action={`${requestPath(item.request_id)}/cancel`}>
            <FormToken frame={frame} />
            <button type="submit">Cancel it</button>
          </form>
        </section>
      </div>
    </Page>
  );
}
