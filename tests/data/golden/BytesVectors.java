import java.math.BigDecimal;
import java.util.*;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Prints what HBase's Bytes makes of values, and what it reads from bytes, as JSON: hbase_bytes.json.
 * java -cp "LIBS/*" BytesVectors.java, where LIBS holds the jars of embedded HBase.
 */
public class BytesVectors {
  static final StringBuilder out = new StringBuilder();
  static String hex(byte[] b) { StringBuilder s = new StringBuilder(); for (byte x : b) s.append(String.format("%02x", x)); return s.toString(); }
  static byte[] raw(String h) { return h.isEmpty() ? new byte[0] : HexFormat.of().parseHex(h); }
  static String quote(String s) {
    StringBuilder q = new StringBuilder("\"");
    for (char c : s.toCharArray()) { if (c == '"' || c == '\\') q.append('\\').append(c); else if (c < 32 || c > 126) q.append(String.format("\\u%04x", (int) c)); else q.append(c); }
    return q.append('"').toString();
  }
  static String read(String type, byte[] b) {
    try {
      switch (type) {
        case "long": return "" + Bytes.toLong(b);
        case "int": return "" + Bytes.toInt(b);
        case "short": return "" + Bytes.toShort(b);
        case "double": return "" + Double.doubleToRawLongBits(Bytes.toDouble(b));
        case "float": return "" + Float.floatToRawIntBits(Bytes.toFloat(b));
        case "boolean": return "" + Bytes.toBoolean(b);
        case "decimal": { BigDecimal d = Bytes.toBigDecimal(b); return d == null ? null : d.unscaledValue() + "e" + (-(long) d.scale()); }
        default: throw new IllegalStateException(type);
      }
    } catch (IllegalArgumentException e) { return null; }
  }
  static void line(String type, byte[] b) {
    String r = read(type, b);
    out.append("  [").append(quote(type)).append(", ").append(quote(hex(b))).append(", ").append(r == null ? "null" : quote(r)).append("],\n");
  }
  public static void main(String[] a) {
    out.append("{\"made_by\": \"org.apache.hadoop.hbase.util.Bytes of HBase ").append(org.apache.hadoop.hbase.util.VersionInfo.getVersion()).append("\",\n \"values\": [\n");
    for (long v : new long[] {0, 1, -1, -3, 255, 256, Long.MAX_VALUE, Long.MIN_VALUE, 0x0102030405060708L}) line("long", Bytes.toBytes(v));
    for (int v : new int[] {0, 1, -1, 49, Integer.MAX_VALUE, Integer.MIN_VALUE, 0x01020304}) line("int", Bytes.toBytes(v));
    for (short v : new short[] {0, 1, -1, Short.MAX_VALUE, Short.MIN_VALUE, 0x0102}) line("short", Bytes.toBytes(v));
    for (double v : new double[] {0.0, -0.0, 1.5, -12345.625, Double.MIN_VALUE, Double.MAX_VALUE, Double.NaN, Double.longBitsToDouble(0x7ff8000000000123L), Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}) line("double", Bytes.toBytes(v));
    for (float v : new float[] {0f, -0f, 1.5f, -0.1f, Float.MIN_VALUE, Float.MAX_VALUE, Float.NaN, Float.POSITIVE_INFINITY}) line("float", Bytes.toBytes(v));
    for (boolean v : new boolean[] {true, false}) line("boolean", Bytes.toBytes(v));
    for (String v : new String[] {"0", "0.00", "1", "-1", "127", "128", "-128", "-129", "123.45", "-0.01", "1E+3", "1E-10", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "100000000000000000000000000000000000000", "3.141592653589793238462643383279502884197", "12300E-2", "0E+50", "1E+37", "1E+38"}) line("decimal", Bytes.toBytes(new BigDecimal(v)));
    for (String t : new String[] {"long", "int", "short", "double", "float", "boolean", "decimal"})
      for (String h : new String[] {"", "00", "01", "7f", "80", "ff", "0001", "000102", "00000000", "0000000001", "00000002ff85", "000000020000000001", "0000000000000001", "000000000000000100", "ffffffff7b"}) line(t, raw(h));
    out.setLength(out.length() - 2);
    out.append("\n ],\n \"text_forms\": [\n");
    for (String h : new String[] {"", "61", "0061ff", "5c", "5c783431", "2c", "7e7f", "20", "c3b6", "0a0d0922", "5f5f656d7074795f5f"})
      out.append("  [").append(quote(h)).append(", ").append(quote(Bytes.toStringBinary(raw(h)))).append("],\n");
    out.setLength(out.length() - 2);
    out.append("\n ]}\n");
    System.out.print(out);
  }
}
