/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One request: its timeline, usage, cost, the changes made to it, and its identifiers. */

import type { Filters } from "../../../books/history/history";
import { ProxyError } from "../../../lib/errors";
import { clock, day, duration, formatCount } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import { findRequest, type ShownEntry, type ShownRunning, withElsewhere } from "../../api/requests";
import { Duration, Moment, Sentence, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { promptPath, requestPath, requestsPath } from "../../ui/links";
import { Pair, Section } from "../../ui/lists";
import { Copy, ReloadedAlways } from "../../ui/notes";
import { type PageContext, redirect } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { ToolName } from "../../ui/tool-name";
import { type MemberNames, memberNamesFor } from "../member-names";
import { MarkedForCache, Portions } from "../portions";
import { rowTags, Status, toneOf } from "../requests/rows";
import { modelWithin, RequestCost } from "./cost";
import { describeFixup } from "./fixups";
import { ParentLink, Searches, searchesOf } from "./searches";
import { Timeline } from "./timeline";
import { whatToDo } from "./what-to-do";

export async function requestPage(context: PageContext): Promise<Markup | StreamedPage> {
  const { app, frame, params } = context;
  const found = await findRequest(app, params.id ?? "");
  if (!found)
    throw new ProxyError(
      "not_found",
      withElsewhere(
        app.running,
        "No request with this ID is in the history. It may have been deleted after the retention period, or the ID may be wrong.",
      ),
    );
  if (found.running) return <RunningPage item={found.item} frame={frame} names={memberNamesFor(app)} now={app.now()} />;
  const { item } = found;
  const searches = await searchesOf(app, item);
  const neighbours = await neighboursOf(app, item);
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
        {item.error_type !== null && <WhyFailed item={item} />}
        <ParentLink item={item} />
        <Neighbours {...neighbours} />
        <div class="columns">
          <div>
            <Section id="timeline" title="Timeline" card>
              <Timeline item={item} />
            </Section>
            <Changes item={item} />
          </div>
          <div>
            <Section id="usage" title="Usage and cost" card>
              {slot}
            </Section>
            {item.portions.length > 0 && (
              <Section id="portions" title="What it was made of" card>
                <Portions portions={item.portions} caption="The parts of the prompt, and the reply" />
                <MarkedForCache marked={item.marked_tokens} isShown={item.upstream_dialect === "messages"} />
              </Section>
            )}
            <Searches items={searches} />
            <Ids item={item} names={memberNamesFor(app)} now={now} />
          </div>
        </div>
      </Page>
    ),
    parts: [async () => <RequestCost item={item} model={await modelWithin(app, item.upstream_model)} />],
  };
}

const WhyFailed = ({ item }: { item: ShownEntry }) => (
  <section class={`note ${toneOf(item)}`} aria-label="Why it failed">
    <h2>
      <Value of={item.error_type} />
    </h2>
    <p>
      <Sentence of={item.error_message ?? "The upstream gave no reason."} />
    </p>
    <p>
      <Sentence of={whatToDo(item)} />
    </p>
  </section>
);

interface NeighbourIds {
  older?: string;
  newer?: string;
}

/** The rows that ended before and after this one. A member's newer row is not known: the history cannot be read upwards. */
async function neighboursOf({ history, owner }: Scope, { id }: ShownEntry): Promise<NeighbourIds> {
  if (id === undefined) return {};
  const [{ items }, newer] = await Promise.all([history.list({}, 1, id), owner ? history.after(id, 1) : []]);
  return { older: items[0]?.request_id, newer: newer[0]?.request_id };
}

const Neighbours = ({ older, newer }: NeighbourIds) => (
  <nav class="neighbours" aria-label="Other requests">
    {older !== undefined && (
      <a href={requestPath(older)} rel="prev">
        ← Previous request
      </a>
    )}
    {newer !== undefined && (
      <a href={requestPath(newer)} rel="next">
        Next request →
      </a>
    )}
  </nav>
);

export async function cancelFromPage({ app, params }: PageContext): Promise<Response> {
  const id = params.id ?? "";
  if (!app.running.cancel(id)) {
    const sentence = "No running request has this ID. It may have just finished.";
    throw new ProxyError("not_found", withElsewhere(app.running, sentence));
  }
  // Its row is there a moment later.
  const deadline = performance.now() + rowPatienceMs;
  while ((await findRequest(app, id))?.running !== false && performance.now() < deadline) await Bun.sleep(20);
  return redirect(requestPath(id));
}

const rowPatienceMs = 1_000;

function Changes({ item }: { item: ShownEntry }): Markup {
  const { fixups, dropped, client_dialect, upstream_dialect } = item;
  const translated = upstream_dialect !== null && upstream_dialect !== client_dialect;
  return (
    <Section id="changes" title="Changes made" card>
      {fixups.length === 0 && dropped.length === 0 && (
        <p class="soft">{translated ? "None besides the translation." : "None."}</p>
      )}
      {fixups.length > 0 && (
        <dl class="fixups">
          {fixups.map((name) => (
            <div>
              <dt>
                <code>{name.slice(0, 80)}</code>
              </dt>
              <dd>{describeFixup(name, item) ?? "No description is available for this change."}</dd>
            </div>
          ))}
        </dl>
      )}
      {dropped.length > 0 && (
        <>
          <h3>Removed or changed because the upstream does not support it</h3>
          <ul class="plain-list">
            {dropped.map((name) => (
              <li>
                <code>{name.slice(0, 120)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

function Ids({ item, names, now }: { item: ShownEntry; names: MemberNames | undefined; now: number }): Markup {
  return (
    <Section id="ids" title="Identifiers" card>
      <dl class="pairs">
        <Pair name="Request ID">
          <code id="request-id">{item.request_id}</code> <Copy of="request-id" quiet />
        </Pair>
        {names && (
          <Pair name="Member">
            <a href={requestsPath({ member: item.member })}>
              <Value of={names.nameOf(item.member)} max={60} />
            </a>
          </Pair>
        )}
        {rowTags.map(
          ({ column, name }) =>
            item[column] !== null && (
              <Pair name={name}>
                <a href={requestsPath({ [column]: item[column] })}>
                  <Value of={item[column]} max={60} />
                </a>
              </Pair>
            ),
        )}
        {item.prompt !== null && (
          <Pair name="Prompt">
            <a href={promptPath(item.prompt)}>
              <code>{item.prompt}</code>
            </a>
          </Pair>
        )}
        {item.session !== null && (
          <Pair name="Session">
            <a href={requestsPath({ session: item.session })}>
              <code>{item.session}</code>
            </a>
          </Pair>
        )}
        <Pair name="History row">{item.id === undefined ? "not written yet" : formatCount(item.id)}</Pair>
        <Pair name="Started">
          {day(item.started_at_ms, now)}, {clock(item.started_at_ms, true)}
        </Pair>
      </dl>
      <Related item={item} />
    </Section>
  );
}

function Related({ item }: { item: ShownEntry }) {
  const { started_at_ms: at, client_model, upstream_model, client_name, error_type } = item;
  const around = 5 * 60_000;
  const lists: [words: string, filters: Filters][] = [
    ["Requests within five minutes of this one", { from_ms: at - around, to_ms: at + around }],
    ["All requests for this model", upstream_model === null ? { client_model } : { upstream_model }],
    ["All requests from this client", { client_name }],
    ...(error_type === null ? [] : [["All failed requests", { has_error: true }] as [string, Filters]]),
  ];
  return (
    <ul class="plain-list">
      {lists.map(([words, filters]) => (
        <li>
          <a href={requestsPath(filters)}>{words}</a>
        </li>
      ))}
    </ul>
  );
}

interface RunningPageProps {
  item: ShownRunning;
  frame: Frame;
  names: MemberNames | undefined;
  now: number;
}

function RunningPage({ item, frame, names, now }: RunningPageProps): Markup {
  return (
    <Page frame={frame} title="Request" current="/admin/requests" aside={<span class="badge busy">running</span>}>
      <ReloadedAlways />
      <div id="live" data-follow="/admin/requests/live">
        <section class="card">
          <h2>In progress</h2>
          <ParentLink item={item} />
          <dl class="pairs">
            <Pair name="Duration">
              <Duration of={Math.max(0, now - item.started_at_ms)} />
            </Pair>
            {names && (
              <Pair name="Member">
                <Value of={names.nameOf(item.member)} />
              </Pair>
            )}
            <Pair name="Client">
              <ToolName of={item.client_name} /> at <code>{item.path.slice(0, 200)}</code>
            </Pair>
            <Pair name="Model">
              <Value of={item.upstream_model ?? item.client_model} />
            </Pair>
            <Pair name="Account">{item.account_id === null ? "none yet" : <Value of={item.account_key} />}</Pair>
            {item.searches !== null && <Pair name="Web searches">{formatCount(item.searches)}</Pair>}
            <Pair name="First byte">
              {item.first_byte_ms === null ? "not yet" : `after ${duration(item.first_byte_ms)}`}
            </Pair>
          </dl>
          <form method="post" action={`${requestPath(item.request_id)}/cancel`}>
            <FormTokenInput frame={frame} />
            <button type="submit">Cancel request</button>
          </form>
        </section>
      </div>
    </Page>
  );
}
