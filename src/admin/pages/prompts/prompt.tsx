/** @jsxRuntime automatic @jsxImportSource #jsx */
/** One prompt: why it cost what it did, what of it went where, and its requests side by side. */
import { ProxyError } from "../../../lib/errors";
import { duration, formatCount, plural } from "../../../lib/format";
import { costsOf } from "../../../lib/money";
import { missSentence } from "../../api/cache-savings";
import { listPrompts, type Prompt } from "../../api/prompts";
import { listRequests, type ShownEntry } from "../../api/requests";
import { Stretch } from "../../ui/chart";
import { CostOf, Duration, Lost, Moment, Sentence, Tokens, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { promptsPath, requestPath, requestsPath } from "../../ui/links";
import { Pair, Section, Table } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { ToolName } from "../../ui/tool-name";
import { LostCost, Portions } from "../portions";
import { Status } from "../requests/rows";

/** Requests that are drawn; the page Requests has all. */
const mostDrawn = 200;

export async function promptPage({ app, frame, params }: PageContext): Promise<Markup> {
  const filters = { prompt: params.id ?? "" };
  const [{ items }, requests] = await Promise.all([
    listPrompts(app, filters, 1),
    listRequests(app, filters, mostDrawn),
  ]);
  const [prompt] = items;
  if (!prompt)
    throw new ProxyError(
      "not_found",
      "No prompt with this ID is in the history. It may have been deleted after the retention period, or the ID may be wrong.",
    );
  const drawn = requests.items.toSorted((one, other) => one.started_at_ms - other.started_at_ms);
  const measured = drawn.flatMap(({ portions }) => portions);
  return (
    <Page
      frame={frame}
      title="Prompt"
      current="/admin/prompts"
      aside={
        <p class="under">
          <ToolName of={prompt.client_name} max={40} /> ·{" "}
          <Moment at={prompt.started_at_ms} now={app.now()} seconds={true} /> · <CostOf of={prompt} />
        </p>
      }
    >
      <p class="lead">{prompt.why}</p>
      <div class="columns">
        <section class="card" aria-labelledby="requests">
          <h2 id="requests">
            <a href={requestsPath(filters)}>{plural(prompt.request_count, "request")}</a> in{" "}
            {duration(prompt.duration_ms)}
          </h2>
          <Waterfall prompt={prompt} requests={drawn} />
          {requests.has_more && <p class="soft">The newest {formatCount(drawn.length)} are shown.</p>}
        </section>
        <div>
          <Parts prompt={prompt} />
          {measured.length > 0 && (
            <Section id="portions" title="What it was made of" card>
              <Portions portions={measured} caption="The parts of all its prompts, and the replies" isSum />
              <p class="soft">Each request sends the conversation again: what is cached costs a fraction.</p>
            </Section>
          )}
          <Facts prompt={prompt} />
        </div>
      </div>
    </Page>
  );
}

const Waterfall = ({ prompt, requests }: { prompt: Prompt; requests: ShownEntry[] }) => (
  <ol class="timeline">
    {requests.map((item) => {
      const from = item.started_at_ms - prompt.started_at_ms;
      const tone = item.error_type === null ? (item.kind === "main" ? "good" : "flow") : "bad";
      return (
        <li class={tone}>
          <div class="step">
            <a href={requestPath(item.request_id)}>{nameOf(item)}</a>
            <span class="num soft">+ {duration(Math.max(0, from))}</span>
          </div>
          <Stretch from={from} to={from + item.duration_ms} whole={prompt.duration_ms} tone={tone} />
          <div class="text">
            <Value of={item.upstream_model ?? item.client_model} max={40} /> · <Duration of={item.duration_ms} /> ·{" "}
            <CostOf of={costsOf(item)} />
            <NotFound item={item} />
            {item.error_type !== null && (
              <>
                {" "}
                · <Status item={item} />
              </>
            )}
          </div>
        </li>
      );
    })}
  </ol>
);

function NotFound({ item }: { item: ShownEntry }) {
  const missed = missSentence(item);
  return (
    missed !== undefined && (
      <>
        {item.cached_tokens ? " · not all in the cache: " : " · not in the cache: "}
        <Sentence of={missed} />
        <LostCost of={item.cache_lost_cost} />
      </>
    )
  );
}

const kindNames: Record<string, string> = {
  main: "Conversation",
  subagent: "Subagent",
  check: "Auto mode’s checks",
  title: "Titles",
  compaction: "Compaction",
  auxiliary: "Beside the conversation",
  search: "Search",
};
const nameOf = ({ kind, agent_type }: Pick<Prompt["parts"][number], "agent_type"> & { kind: string | null }): string =>
  `${kindNames[kind ?? ""] ?? "Unknown"}${agent_type === null ? "" : `: ${agent_type}`}`;

const Parts = ({ prompt }: { prompt: Prompt }) => (
  <Section id="parts" title="Where it went" card>
    <Table
      caption="The cost by kind of request"
      rows={prompt.parts}
      columns={[["Kind", nameOf]]}
      numbers={[
        ["Requests", (part) => formatCount(part.request_count)],
        ["Cost", (part) => <CostOf of={part} />],
      ]}
    />
    {prompt.unknown_cost_count > 0 && (
      <p class="soft">The cost of {plural(prompt.unknown_cost_count, "request")} is not known.</p>
    )}
  </Section>
);

const Facts = ({ prompt: { cold, failed, ...prompt } }: { prompt: Prompt }) => (
  <Section id="facts" title="Besides" card>
    <dl class="pairs">
      <Pair name="Not found in the cache">
        {cold.request_count === 0 ? (
          "none"
        ) : (
          <>
            {plural(cold.request_count, "request")}, for <Lost of={cold} /> credits
          </>
        )}
      </Pair>
      <Pair name="Failed">
        {failed.request_count === 0 ? (
          "none"
        ) : (
          <>
            {plural(failed.request_count, "request")}, for <CostOf of={failed} />
          </>
        )}
      </Pair>
      <Pair name="Repeated calls">{formatCount(failed.retry_count)}</Pair>
      <Pair name="Tokens">
        <Tokens of={prompt.input_tokens} /> in, <Tokens of={prompt.cached_tokens} /> of them cached;{" "}
        <Tokens of={prompt.output_tokens} /> out
      </Pair>
      <Pair name="Models">{prompt.models.join(", ")}</Pair>
      {prompt.project !== null && (
        <Pair name="Project">
          <a href={promptsPath({ project: prompt.project })}>
            <Value of={prompt.project} />
          </a>
        </Pair>
      )}
      {prompt.session !== null && (
        <Pair name="Session">
          <a href={promptsPath({ session: prompt.session })}>
            <code>{prompt.session}</code>
          </a>
        </Pair>
      )}
    </dl>
  </Section>
);
