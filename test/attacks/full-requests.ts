/** Requests with everything in them that a prompt may have, each part with a word by which it is found again. */

/** What a prompt and its answer are made of, each with a word of its own; of media their data, which is base64. */
export const parts = [
  ...["system", "description", "schema", "schemaName", "person", "client", "answer", "thinking", "arguments"],
  ...["results", "image", "document", "title", "fileName", "reply", "thoughts", "called"],
] as const;
type Contents = Record<(typeof parts)[number], string>;
export const words = Object.fromEntries(
  parts.map((part) => [part, `zqcanary${part}of4711zz`.padEnd(28, "q")]),
) as Contents;

/** In each dialect a request with everything in it. */
export function fullRequests({
  system,
  description,
  schema,
  schemaName,
  ...of
}: Contents): [path: string, body: object][] {
  const parameters = {
    type: "object",
    properties: { [schemaName]: { type: "string", description: schema, enum: [schema] } },
  };
  const input = { path: `/home/${of.fileName}.ts`, text: of.arguments };
  const json = JSON.stringify(input);
  const png = { type: "base64", media_type: "image/png", data: of.image };
  const pdf = { type: "base64", media_type: "application/pdf", data: of.document };
  const [pngUrl, pdfUrl] = [`data:image/png;base64,${of.image}`, `data:application/pdf;base64,${of.document}`];
  const reminder = `<system-reminder>${of.client}</system-reminder>`;
  const file = { filename: `${of.fileName}.pdf`, file_data: pdfUrl };
  const named = { name: "read_file", description };
  return [
    [
      "/v1/messages",
      {
        ...{ model: "claude-sonnet-4.6", max_tokens: 500, stream: true, system },
        tools: [{ ...named, input_schema: parameters }],
        messages: [
          {
            role: "user",
            content: [
              ...[reminder, of.person].map((text) => ({ type: "text", text })),
              { type: "image", source: png },
              { type: "document", source: pdf, title: of.title, context: of.title },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: of.thinking, signature: of.thinking },
              { type: "text", text: of.answer },
              { type: "tool_use", id: "t1", name: "read_file", input },
            ],
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: of.results }] },
        ],
      },
    ],
    [
      "/v1/responses",
      {
        ...{ model: "gpt-5.3-codex", instructions: system, store: false },
        tools: [{ type: "function", ...named, parameters }],
        input: [
          {
            role: "user",
            content: [
              ...[reminder, of.person].map((text) => ({ type: "input_text", text })),
              { type: "input_image", image_url: pngUrl },
              { type: "input_file", ...file },
            ],
          },
          { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: of.thinking }] },
          { role: "assistant", content: [{ type: "output_text", text: of.answer }] },
          { type: "function_call", call_id: "t1", name: "read_file", arguments: json },
          { type: "function_call_output", call_id: "t1", output: of.results },
        ],
      },
    ],
    [
      "/v1/chat/completions",
      {
        model: "gpt-5-mini",
        tools: [{ type: "function", function: { ...named, parameters } }],
        messages: [
          { role: "system", content: system },
          {
            role: "user",
            content: [
              ...[reminder, of.person].map((text) => ({ type: "text", text })),
              { type: "image_url", image_url: { url: pngUrl } },
              { type: "file", file },
            ],
          },
          {
            ...{ role: "assistant", content: of.answer, reasoning_text: of.thinking },
            tool_calls: [{ id: "t1", type: "function", function: { name: "read_file", arguments: json } }],
          },
          { role: "tool", tool_call_id: "t1", content: of.results },
        ],
      },
    ],
    [
      "/v1beta/models/claude-sonnet-4.6:generateContent",
      {
        systemInstruction: { parts: [{ text: system }] },
        tools: [{ functionDeclarations: [{ ...named, parameters }] }],
        contents: [
          {
            role: "user",
            parts: [
              ...[reminder, of.person].map((text) => ({ text })),
              { inlineData: { mimeType: "image/png", data: of.image } },
              { inlineData: { mimeType: "application/pdf", data: of.document, displayName: of.title } },
            ],
          },
          { role: "model", parts: [{ text: of.answer }, { functionCall: { name: "read_file", args: input } }] },
          { role: "user", parts: [{ functionResponse: { name: "read_file", response: { output: of.results } } }] },
        ],
      },
    ],
  ];
}

/** What the upstream says, and calls. */
export const fullReply = ({ reply, thoughts, called }: Contents) => ({
  ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4.6", stop_reason: "tool_use" },
  content: [
    { type: "thinking", thinking: thoughts, signature: thoughts },
    { type: "text", text: reply },
    { type: "tool_use", id: "t2", name: "read_file", input: { path: called } },
  ],
  usage: { input_tokens: 2_000, output_tokens: 50 },
});
