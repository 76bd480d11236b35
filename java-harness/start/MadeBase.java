package start;

/** Super class of {@link Made}. */
public class MadeBase {
    public long inherited;
}
