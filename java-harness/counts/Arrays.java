package counts;

import held.Cell;

/** The arrays of one worker; no two have the same length. */
final class Arrays {
    /** Where every worker's arrays escape to. */
    static Arrays[] all;

    final boolean[] booleans = new boolean[17];
    final byte[] bytes = new byte[19];
    final char[] chars = new char[23];
    final short[] shorts = new short[29];
    final int[] ints = new int[31];
    final long[] longs = new long[37];
    final float[] floats = new float[41];
    final double[] doubles = new double[43];
    final Cell[] cells = new Cell[47];
    final int[][] rows = new int[11][3];
    final Cell cell = new Cell();
}
