/** Looks at answers of Copilot for what is new in them. */
import type { App } from "../app";
import type { Dialect } from "../dialects/hub/conversation";
import type { CallResponse } from "../net/out/body";
import { isProvided, type Target } from "./target";
import type { UpstreamCall } from "./upstream-call";

/** The call for this answer: mostly the very same, and once a minute one whose reply is looked at. */
export function watched(
  { drift }: Pick<App, "drift">,
  target: Target & { dialect: Dialect },
  call: UpstreamCall,
  { headers }: Pick<CallResponse, "headers">,
): UpstreamCall {
  const watch = isProvided(target) ? undefined : drift.watch(target.dialect, target.model.id, call.stream);
  if (!watch) return call;
  watch.headers(headers);
  const { collect } = call;
  return {
    ...call,
    full(text, json) {
      watch.full(json);
      return call.full(text, json);
    },
    collect:
      collect &&
      (() => {
        const collected = collect();
        return { ...collected, feed: watch.frames(collected.feed) };
      }),
    stages(out) {
      const stages = call.stages(out);
      return { ...stages, feed: watch.frames(stages.feed) };
    },
  };
}
