/** Takes what an exporter sends and keeps nothing but its size; GET answers how many bytes of traces came. */
let bytes = 0;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    if (request.method === "GET") return Response.json(bytes);
    const { byteLength } = await request.arrayBuffer();
    if (new URL(request.url).pathname === "/v1/traces") bytes += byteLength;
    return new Response(new Uint8Array(), { headers: { "content-type": "application/x-protobuf" } });
  },
});
console.log(server.port);
