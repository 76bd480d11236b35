package shapes;

/** A record: its accessors load. */
public record Point(int x, long y) {}
