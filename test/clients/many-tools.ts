/**
 * An MCP server on stdin and stdout whose tools are as many as its argument says, with descriptions of at least as many characters
 * as the second one says. `bun test/clients/many-tools.ts 120 1500`
 */

const length = Number(process.argv[3] ?? 0);
const tools = Array.from({ length: Number(process.argv[2]) }, (_, at) => ({
  name: `read_record_${at}`,
  description: padded(
    `Reads record ${at} of the warehouse: its state, its owner and every change of the last ninety days, newest first.`,
  ),
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of the record to read, as listed by the search." },
      limit: { type: "integer", description: "How many changes are returned at most." },
      since: { type: "string", description: "A date in ISO 8601; older changes are left out." },
    },
    required: ["id"],
  },
}));

function padded(text: string): string {
  let long = text;
  for (let at = 1; long.length < length; at++) long += ` Field ${at} says who has changed it, and when.`;
  return long;
}

const answers: Record<string, (params: { protocolVersion?: string }) => object> = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "warehouse", version: "1" },
  }),
  "tools/list": () => ({ tools }),
  "tools/call": () => ({ content: [{ type: "text", text: "the record is complete" }] }),
};

export {};

for await (const line of console) {
  if (line.trim() === "") continue;
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }));
}
