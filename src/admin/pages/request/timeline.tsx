/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The timeline of one request: received, routed, each attempt, first byte, end. */

import { clock, duration, percent } from "../../../lib/format";
import type { ShownEntry } from "../../api/requests";
import { Stretch } from "../../ui/chart";
import { Sentence, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { ToolName } from "../../ui/tool-name";
import { hasAnswered, Status, toneOf } from "../requests/rows";

interface Step {
  name: string;
  at?: number;
  from?: number;
  to?: number;
  tone?: string;
  text: Child;
}

export function Timeline({ item }: { item: ShownEntry }): Markup {
  const whole = Math.max(item.duration_ms, 1);
  return (
    <ol class="timeline">
      {stepsOf(item).map(({ name, from = 0, to = from, at, tone, text }) => (
        <li class={tone}>
          <div class="step">
            <strong>{name}</strong>
            {at !== undefined && (
              <span class="num soft">{at === 0 ? clock(item.started_at_ms, true) : `+ ${duration(at)}`}</span>
            )}
          </div>
          {to > from && <Stretch from={from} to={to} whole={whole} tone={tone} />}
          <div class="text">{text}</div>
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
      text: (
        <>
          <ToolName of={item.client_name} /> requested <Value of={item.client_model} /> at{" "}
          <code>{item.path.slice(0, 200)}</code>, {item.stream ? "as a stream" : "without streaming"}.
        </>
      ),
    },
    { name: "Routed", text: <Routing item={item} /> },
    ...item.fallbacks.map(passedOverStep),
    ...(item.auto ? [autoStep(item.auto)] : []),
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
            text: `The rest of the response took ${duration(Math.max(0, whole - first))}.`,
          },
        ]),
    {
      name: "End",
      at: whole,
      from: whole,
      tone: toneOf(item),
      text: (
        <>
          <Status item={item} />
          {item.error_type === null && item.stop_reason === null && " The upstream gave no stop reason."}
        </>
      ),
    },
  ];
}

/** Each attempt starts where the one before it ended: the pauses between attempts are not recorded. */
function attemptsOf(attempts: ShownEntry["attempts"]): Step[] {
  let from = 0;
  return attempts.map((attempt, at) => {
    const { account, model, status, error, ms } = attempt;
    const step = {
      name: attempts.length === 1 ? "Attempt" : `Attempt ${at + 1}`,
      at: from === 0 ? undefined : from,
      from,
      to: from + ms,
      tone: hasAnswered(attempt) ? "good" : "bad",
      text: (
        <>
          {account === null ? "The provider" : <Value of={account} />}
          {model !== undefined && (
            <>
              , asked for <Value of={model} />,
            </>
          )}{" "}
          answered {status ?? <Value of={error ?? "nothing"} />}
          {status !== undefined && error !== undefined && (
            <>
              {" "}
              with <Value of={error} />
            </>
          )}{" "}
          after {duration(ms)}.
        </>
      ),
    };
    from += ms;
    return step;
  });
}

/** How Auto's ways are named on the page. */
type ShownChoice = NonNullable<ShownEntry["auto"]>;

const autoWays: Record<ShownChoice["by"], string> = {
  auto: "GitHub Copilot chose the model for this conversation",
  session: "GitHub Copilot chose the model for this conversation, by its older protocol",
  omission: "The request was sent without a model, and the answer named the one that served",
};

const autoStep = ({ by, why, discount }: ShownChoice): Step => ({
  name: "Auto",
  text: (
    <>
      {autoWays[by]}
      {why !== null && (
        <>
          ; its reason: <Value of={why} max={80} />
        </>
      )}
      .{discount !== null && ` GitHub announces a discount of ${percent(discount)} on it.`}
    </>
  ),
});

/** A model that was to serve before. */
const passedOverStep = ({ model, status, why }: ShownEntry["fallbacks"][number]): Step => ({
  name: `In place of ${model.slice(0, 80)}`,
  tone: "bad",
  text: (
    <>
      {status !== null && `Status ${status}: `}
      <Sentence of={why} />
    </>
  ),
});

function Routing({ item }: { item: ShownEntry }): Markup {
  const { client_dialect, upstream_dialect, upstream_endpoint, upstream_model, initiator, initiator_reason } = item;
  if (upstream_endpoint === null) return <>The request ended before an upstream was chosen.</>;
  const translated = upstream_dialect !== null && upstream_dialect !== client_dialect;
  if (item.parent_id !== null)
    return (
      <>
        To <code>{upstream_endpoint}</code>, for another request; counted as <Value of={initiator} />.
      </>
    );
  return (
    <>
      To <code>{upstream_endpoint}</code>, model <Value of={upstream_model} />;{" "}
      {translated
        ? `translated from ${client_dialect} to ${upstream_dialect}, because the model does not support ${client_dialect}`
        : "passed through without translation"}
      .
      {initiator !== null && (
        <>
          {" "}
          Billed as {initiator === "agent" ? "an agent" : "a user"} turn:{" "}
          <Value of={initiator_reason ?? "no reason was recorded"} max={120} />.
        </>
      )}
    </>
  );
}
