package torture;

/** One run of a unit: how much it may do yet. */
public final class Turn {
    public int fuel;
    public Unit[] units;
    public int[] xs;
    public int faults;
    public int text;
    final boolean messages;

    Turn(boolean messages) {
        this.messages = messages;
    }

    /** A caught exception becomes part of the result. */
    public static int caught(Turn t, RuntimeException e) {
        t.faults++;
        t.text = t.text * 31 + e.getClass().getName().hashCode();
        if (t.messages) {
            String message = e.getMessage();
            // What a failed cast says of loaders has their hash codes.
            int end = message == null ? 0 : message.indexOf(" (");
            t.text = t.text * 31 + (message == null ? 0 : end < 0 ? message.hashCode() : end);
            StackTraceElement[] trace = e.getStackTrace();
            t.text = t.text * 31 + (trace.length == 0 ? 7 : trace[0].getMethodName().hashCode());
        }
        return t.text;
    }
}
