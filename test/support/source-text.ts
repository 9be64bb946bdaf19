/** Requests and replies in each dialect's own JSON, written by hand around one JSON text that must arrive unchanged. */
import type { Dialect } from "../../src/dialects/hub/conversation";

/** JSON text of a body, or of a part of it. */
type Json = string;

const quoted = (text: string): Json => JSON.stringify(text);

/**
 * A conversation with a call whose input is this object, and a tool whose schema holds it.
 * @param needsFixup With something that the proxy must change on its way to an upstream of the same dialect.
 */
export function requestOf(dialect: Dialect, model: string, value: Json, stream: boolean, needsFixup: boolean): Json {
  const schema = `{"type":"object","properties":{"a":{"type":"object","default":${value}}}}`;
  return requests[dialect](model, value, schema, stream, needsFixup);
}

const requests: Record<
  Dialect,
  (model: string, value: Json, schema: Json, stream: boolean, needsFixup: boolean) => Json
> = {
  chat: (model, value, schema, stream, needsFixup) => `{
    "model":"${model}", "stream": ${stream}, "temperature":1.0, ${stream ? '"stream_options":{"include_usage":true},' : ""}
    "messages":[{"role":"user","content":"Look it up."},${needsFixup ? '{"role":"developer","content":"Be brief."},' : ""}
      {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":${quoted(value)}}}]},
      {"role":"tool","tool_call_id":"call_1","content":"nothing"}],
    "tools":[{"type":"function","function":{"name":"look","parameters":${schema}}}]}`,
  responses: (model, value, schema, stream, needsFixup) => `{
    "model":"${model}", "stream": ${stream}, "store":false, "temperature": 1.0, "include":["reasoning.encrypted_content"],
    "input":[{"role":"user","content":"Look it up."},
      {"type":"function_call",${needsFixup ? '"id":"fc_1",' : ""}"call_id":"call_1","name":"look","arguments":${quoted(value)}},
      {"type":"function_call_output","call_id":"call_1","output":"nothing"}],
    "tools":[{"type":"function","name":"look","parameters":${schema}${needsFixup ? "" : ',"strict":false'}}]}`,
  messages: (model, value, schema, stream, needsFixup) => `{
    "model":"${model}", "stream": ${stream}, "temperature": 1.0, "max_tokens":1000,
    "messages":[{"role":"user","content":"Look it up."},
      {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":${value}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"nothing"${needsFixup ? ',"cache_control":{"type":"ephemeral","ttl":"1h"}' : ""}}]}],
    "tools":[{"name":"look","input_schema":${schema}${needsFixup ? ',"cache_control":{"type":"ephemeral","ttl":"1h"}' : ""}}]}`,
};

/** A full reply that calls the tool with this object. */
export function replyOf(dialect: Dialect, model: string, value: Json): Json {
  switch (dialect) {
    case "chat":
      return `{"id":"c1","object":"chat.completion","created":1750000000,"model":"${model}","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_2","type":"function","function":{"name":"look","arguments":${quoted(value)}}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`;
    case "responses":
      return responseOf(model, "completed", `[${callItem(value, "completed")}]`);
    case "messages":
      return `{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[{"type":"tool_use","id":"toolu_2","name":"look","input":${value}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`;
  }
}

const callItem = (value: Json, status: string) =>
  `{"type":"function_call","id":"fc_2","call_id":"call_2","name":"look","arguments":${quoted(value)},"status":"${status}"}`;

const responseOf = (model: string, status: string, output: Json) =>
  `{"id":"resp_1","object":"response","created_at":1750000000,"status":"${status}","model":"${model}","temperature":1.0,"output":${output},"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`;

/** The same as a stream, the input in these pieces. */
export function streamOf(dialect: Dialect, model: string, pieces: readonly string[]): string {
  const events: Record<Dialect, () => string[]> = {
    chat: () => {
      const chunk = (choice: Json) =>
        `data: {"id":"c1","object":"chat.completion.chunk","created":1750000000,"model":"${model}","choices":[{"index":0,${choice}}]}\n\n`;
      const call = (words: Json) => chunk(`"delta":{"tool_calls":[{"index":0,${words}}]},"finish_reason":null`);
      return [
        chunk('"delta":{"role":"assistant","content":null},"finish_reason":null'),
        call('"id":"call_2","type":"function","function":{"name":"look","arguments":""}'),
        ...pieces.map((piece) => call(`"function":{"arguments":${quoted(piece)}}`)),
        chunk('"delta":{},"finish_reason":"tool_calls"'),
        "data: [DONE]\n\n",
      ];
    },
    responses: () => {
      let number = 0;
      const event = (type: string, members: Json) =>
        `event: ${type}\ndata: {"type":"${type}","sequence_number":${number++},${members}}\n\n`;
      const whole = callItem(pieces.join(""), "completed");
      return [
        event("response.created", `"response":${responseOf(model, "in_progress", "[]")}`),
        event("response.output_item.added", `"output_index":0,"item":${callItem("", "in_progress")}`),
        ...pieces.map((piece) =>
          event("response.function_call_arguments.delta", `"item_id":"fc_2","output_index":0,"delta":${quoted(piece)}`),
        ),
        event("response.output_item.done", `"output_index":0,"item":${whole}`),
        event("response.completed", `"response":${responseOf(model, "completed", `[${whole}]`)}`),
      ];
    },
    messages: () => {
      const event = (type: string, members: Json) => `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`;
      return [
        event(
          "message_start",
          `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`,
        ),
        event(
          "content_block_start",
          ',"index":0,"content_block":{"type":"tool_use","id":"toolu_2","name":"look","input":{}}',
        ),
        ...pieces.map((piece) =>
          event(
            "content_block_delta",
            `,"index":0,"delta":{"type":"input_json_delta","partial_json":${quoted(piece)}}`,
          ),
        ),
        event("content_block_stop", ',"index":0'),
        event("message_delta", ',"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}'),
        event("message_stop", ""),
      ];
    },
  };
  return events[dialect]().join("");
}
