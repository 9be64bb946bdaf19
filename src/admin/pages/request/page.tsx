/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One exchange: its way from the client to an upstream and back, what was changed, and what it cost. */
import { ProxyError } from "../../../errors";
import { findRequest, type ShownEntry, type ShownRunning } from "../../api/requests";
import { clock, Duration, day, duration, formatCount, Moment, Sentence, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { requestPath, requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import { type PageContext, redirect } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { Status } from "../requests/rows";
import { modelWithin, RequestCost } from "./cost";
import { fixupInWords } from "./fixups";
import { Timeline } from "./timeline";

export function requestPage({ app, frame, params }: PageContext): Markup | StreamedPage {
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
            <Changes fixups={item.fixups} dropped={item.dropped} />
            <Ids item={item} now={now} />
          </div>
        </div>
      </Page>
    ),
    parts: [async () => <RequestCost item={item} model={await modelWithin(app, item.upstream_model)} />],
  };
}

export function cancelFromPage({ app, params }: PageContext): Response {
  const id = params.id ?? "";
  if (!app.inFlight.cancel(id))
    throw new ProxyError("not_found", "No request with this id is running: it may have just ended.");
  return redirect(requestPath(id));
}

function Changes({ fixups, dropped }: { fixups: string[]; dropped: string[] }): Markup {
  return (
    <section class="card" aria-labelledby="changes">
      <h2 id="changes">What was changed on the way</h2>
      {fixups.length === 0 && dropped.length === 0 && (
        <p class="soft">Nothing: the request and its answer went through as they were.</p>
      )}
      {fixups.length > 0 && (
        <dl class="fixups">
          {fixups.map((name) => (
            <div>
              <dt>
                <code>{name.slice(0, 80)}</code>
              </dt>
              <dd>{fixupInWords(name) ?? "An edit of this name; there are no more words for it."}</dd>
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

function Ids({ item, now }: { item: ShownEntry; now: number }): Markup {
  const around = 5 * 60_000;
  return (
    <section class="card" aria-labelledby="ids">
      <h2 id="ids">To tell others, and to find more</h2>
      <dl class="pairs">
        <Pair name="Request id">
          <code id="request-id">{item.request_id}</code>{" "}
          <button type="button" class="quiet" data-copy="request-id" hidden>
            Copy
          </button>
        </Pair>
        <Pair name="Row">{item.id === undefined ? "not written yet" : formatCount(item.id)}</Pair>
        <Pair name="Started">
          {day(item.started_at_ms, now)}, {clock(item.started_at_ms, true)}
        </Pair>
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
            <Pair name="For">
              <Duration of={Math.max(0, now - item.started_at_ms)} />
            </Pair>
            <Pair name="Client">
              <Value of={item.client_name} /> at <code>{item.path.slice(0, 200)}</code>
            </Pair>
            <Pair name="Model">
              <Value of={item.upstream_model ?? item.client_model} />
            </Pair>
            <Pair name="Account">{item.account_id === null ? "none yet" : <Value of={item.account_key} />}</Pair>
            <Pair name="First byte">
              {item.first_byte_ms === null ? "not yet" : `after ${duration(item.first_byte_ms)}`}
            </Pair>
          </dl>
          <form method="post" action={`${requestPath(item.request_id)}/cancel`}>
            <FormTokenInput frame={frame} />
            <button type="submit">Cancel it</button>
          </form>
        </section>
      </div>
    </Page>
  );
}
