/** A map of limited size: a new key removes the oldest one. Writing a key makes it the newest. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  /** @param removed Called with the value of a key that was removed for a new one. */
  constructor(
    private readonly max: number,
    private readonly removed: (value: Value) => void = () => {},
  ) {
    super();
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.max)
      for (const [oldest, forgotten] of this) {
        this.delete(oldest);
        this.removed(forgotten);
        break;
      }
    return this;
  }

  /** The value of the key, made if there is none. It becomes the newest. */
  renewed(key: Key, make: () => Value): Value {
    const value = this.get(key) ?? make();
    this.set(key, value);
    return value;
  }
}
