package counts;

import held.Base;
import held.Constants;
import held.Derived;
import held.Made;

/** Inherited, hidden and interface fields, and stores of constructors. */
final class Inheritance {
    /** Where the objects escape to. */
    static Base[] bases;
    static Derived[] deriveds;
    static Made[] made;

    private Inheritance() {}

    /** One round of a worker on its own pair of objects. */
    static int round(int worker, String thread) {
        Base base = bases[worker];
        Derived derived = deriveds[worker];
        int n = 10 + 3 * worker;
        int sum = viaDerived(derived, n) + viaBase(base, n + 1) + viaBase(derived, n + 2);
        viaStatic(n + 3);  // shared with other workers: what it loads differs from run to run
        sum += viaInterface(n + 4);
        make(worker, n + 5);

        String d = "held.Derived";
        String b = "held.Base";
        // Through Derived: own and link are Base's fields of a Derived; hidden is its own.
        Expect.inherited(d, b, "own", "store", thread, n);
        Expect.inherited(d, b, "link", "store", thread, n);
        Expect.inherited(d, d, "hidden", "store", thread, n);
        Expect.inherited(d, d, "extra", "load", thread, n);
        Expect.inherited(d, d, "hidden", "load", thread, n);
        // The same code on a Base and on a Derived.
        Expect.inherited(b, b, "hidden", "store", thread, n + 1);
        Expect.inherited(b, b, "own", "load", thread, n + 1);
        Expect.inherited(d, b, "hidden", "store", thread, n + 2);
        Expect.inherited(d, b, "own", "load", thread, n + 2);
        Expect.field(b, "shared", "static", "plain", "store", thread, n + 3);
        Expect.field(b, "shared", "static", "plain", "load", thread, n + 3);
        Expect.field("held.Constants", "TABLE", "static", "plain", "load", thread, n + 4);
        Expect.field("held.Made", "first", "field", "plain", "store", thread, n + 5);
        Expect.field("held.Made", "second", "field", "plain", "store", thread, n + 5);
        Expect.field("held.Made", "third", "field", "plain", "store", thread, n + 5);
        return sum;
    }

    static int viaDerived(Derived derived, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            derived.own = i;
            derived.link = derived;
            derived.hidden = (byte) i;
            sum += derived.extra;
            sum += derived.hidden;
        }
        return sum;
    }

    static int viaBase(Base base, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            base.hidden = i;
            sum += base.own;
        }
        return sum;
    }

    static int viaStatic(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            Derived.shared = i;
            sum += Base.shared;
        }
        return sum;
    }

    static int viaInterface(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += Constants.TABLE == null ? 1 : 0;
        }
        return sum;
    }

    static void make(int worker, int n) {
        Made last = null;
        for (int i = 0; i < n; i++) {
            last = new Made(i, null);
            made[worker] = last;
        }
    }
}
