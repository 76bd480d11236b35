package cover;

import covered.Held;

/** getfield, putfield, getstatic, putstatic and the array bytecodes: one method for each access. */
final class Bytecodes {
    private Bytecodes() {}

    static int loadField(Held.Z h) {
        return h.v ? 1 : 0;
    }

    static void storeField(Held.Z h, int i) {
        h.v = (i & 1) != 0;
    }

    static int loadStaticZ() {
        return Held.Z.s ? 1 : 0;
    }

    static void storeStaticZ(int i) {
        Held.Z.s = (i & 1) != 0;
    }

    static int loadElement(boolean[] a) {
        return a[Place.INDEX] ? 1 : 0;
    }

    static void storeElement(boolean[] a, int i) {
        a[Place.INDEX] = (i & 1) != 0;
    }

    static int loadField(Held.B h) {
        return h.v;
    }

    static void storeField(Held.B h, int i) {
        h.v = (byte) i;
    }

    static int loadStaticB() {
        return Held.B.s;
    }

    static void storeStaticB(int i) {
        Held.B.s = (byte) i;
    }

    static int loadElement(byte[] a) {
        return a[Place.INDEX];
    }

    static void storeElement(byte[] a, int i) {
        a[Place.INDEX] = (byte) i;
    }

    static int loadField(Held.C h) {
        return h.v;
    }

    static void storeField(Held.C h, int i) {
        h.v = (char) i;
    }

    static int loadStaticC() {
        return Held.C.s;
    }

    static void storeStaticC(int i) {
        Held.C.s = (char) i;
    }

    static int loadElement(char[] a) {
        return a[Place.INDEX];
    }

    static void storeElement(char[] a, int i) {
        a[Place.INDEX] = (char) i;
    }

    static int loadField(Held.S h) {
        return h.v;
    }

    static void storeField(Held.S h, int i) {
        h.v = (short) i;
    }

    static int loadStaticS() {
        return Held.S.s;
    }

    static void storeStaticS(int i) {
        Held.S.s = (short) i;
    }

    static int loadElement(short[] a) {
        return a[Place.INDEX];
    }

    static void storeElement(short[] a, int i) {
        a[Place.INDEX] = (short) i;
    }

    static int loadField(Held.I h) {
        return h.v;
    }

    static void storeField(Held.I h, int i) {
        h.v = i;
    }

    static int loadStaticI() {
        return Held.I.s;
    }

    static void storeStaticI(int i) {
        Held.I.s = i;
    }

    static int loadElement(int[] a) {
        return a[Place.INDEX];
    }

    static void storeElement(int[] a, int i) {
        a[Place.INDEX] = i;
    }

    static int loadField(Held.J h) {
        return (int) h.v;
    }

    static void storeField(Held.J h, int i) {
        h.v = i;
    }

    static int loadStaticJ() {
        return (int) Held.J.s;
    }

    static void storeStaticJ(int i) {
        Held.J.s = i;
    }

    static int loadElement(long[] a) {
        return (int) a[Place.INDEX];
    }

    static void storeElement(long[] a, int i) {
        a[Place.INDEX] = i;
    }

    static int loadField(Held.F h) {
        return (int) h.v;
    }

    static void storeField(Held.F h, int i) {
        h.v = i;
    }

    static int loadStaticF() {
        return (int) Held.F.s;
    }

    static void storeStaticF(int i) {
        Held.F.s = i;
    }

    static int loadElement(float[] a) {
        return (int) a[Place.INDEX];
    }

    static void storeElement(float[] a, int i) {
        a[Place.INDEX] = i;
    }

    static int loadField(Held.D h) {
        return (int) h.v;
    }

    static void storeField(Held.D h, int i) {
        h.v = i;
    }

    static int loadStaticD() {
        return (int) Held.D.s;
    }

    static void storeStaticD(int i) {
        Held.D.s = i;
    }

    static int loadElement(double[] a) {
        return (int) a[Place.INDEX];
    }

    static void storeElement(double[] a, int i) {
        a[Place.INDEX] = i;
    }

    static int loadField(Held.O h) {
        return h.v == null ? 1 : 0;
    }

    static void storeField(Held.O h, int i) {
        h.v = Place.object(i);
    }

    static int loadStaticO() {
        return Held.O.s == null ? 1 : 0;
    }

    static void storeStaticO(int i) {
        Held.O.s = Place.object(i);
    }

    static int loadElement(Held.O[] a) {
        return a[Place.INDEX] == null ? 1 : 0;
    }

    static void storeElement(Held.O[] a, int i) {
        a[Place.INDEX] = Place.object(i);
    }
}
