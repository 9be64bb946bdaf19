/** The open WebSockets of clients: how many there are, what they remember, and how they end when the process stops. */

/** What the listener calls with the events of a socket. */
export interface SocketHandlers {
  open(socket: ServerSocket): void;
  /** Text as it was sent, or the bytes of a binary message. */
  message(socket: ServerSocket, message: string | Buffer): void;
  /** More of what was sent has left the process. */
  drain(socket: ServerSocket): void;
  close(socket: ServerSocket, code: number, reason: string): void;
}

export type ServerSocket = Bun.ServerWebSocket<SocketHandlers>;

export interface ClientSocket {
  /** The id of the member whose key opened it; null for everybody else's. */
  readonly member: string | null;
  /** Ends the socket when its present answer has been sent; now if there is none. */
  retire(): void;
  /** Gives up what it remembers for later requests. */
  forget(): void;
}

export interface ClientSockets {
  /** No further socket may be opened: too many are open, in all or of this member, or the process stops. */
  isFullFor(member: string | null): boolean;
  add(socket: ClientSocket): void;
  remove(socket: ClientSocket): void;
  /**
   * Notes how much the socket remembers. If all together remember too much, those that were used least recently forget.
   * @param bytes 0 if it has nothing to forget.
   */
  remembers(socket: ClientSocket, bytes: number): void;
  /** Retires all sockets, those that are opened later too. */
  drain(): void;
}

/** A client has one for each of its sessions. */
const maxSockets = 1000;
/** Of one member, so that nobody keeps all others out. */
const maxSocketsOfMember = 100;
/** Bytes. */
const maxMemory = 256 * 1024 * 1024;

export function openClientSockets({
  memory = maxMemory,
  sockets: most = maxSockets,
  socketsOfMember: mostOfMember = maxSocketsOfMember,
} = {}): ClientSockets {
  const sockets = new Set<ClientSocket>();
  /** The least recently used first. */
  const sizes = new Map<ClientSocket, number>();
  let total = 0;
  let isDraining = false;

  const release = (socket: ClientSocket) => {
    total -= sizes.get(socket) ?? 0;
    sizes.delete(socket);
  };
  return {
    isFullFor(member) {
      if (isDraining || sockets.size >= most) return true;
      if (member === null || sockets.size < mostOfMember) return false;
      return [...sockets].filter((socket) => socket.member === member).length >= mostOfMember;
    },
    add(socket) {
      sockets.add(socket);
      if (isDraining) socket.retire();
    },
    remove(socket) {
      release(socket);
      sockets.delete(socket);
    },
    remembers(socket, bytes) {
      release(socket);
      if (bytes > 0) sizes.set(socket, bytes);
      total += bytes;
      for (const oldest of sizes.keys()) {
        if (total <= memory) break;
        release(oldest);
        oldest.forget();
      }
    },
    drain() {
      isDraining = true;
      for (const socket of sockets) socket.retire();
    },
  };
}
