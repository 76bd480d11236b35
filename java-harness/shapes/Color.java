package shapes;

/** An enum with a field: its constants are static fields, stored once each. */
public enum Color {
    RED(1),
    GREEN(2);

    public final int weight;

    Color(int weight) {
        this.weight = weight;
    }
}
