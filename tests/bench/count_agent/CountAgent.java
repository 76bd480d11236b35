import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * What bytecode instrumentation can do, for comparison in scripts/bench: a counter before each field, element and
 * monitor instruction of the classes whose names begin with the argument (internal names; empty: all but the JDK's
 * base). Needs ASM 9 on its class path. Prints {@code COUNT class.field loads stores} at the end, elements and
 * monitors under the class whose code makes them.
 */
public final class CountAgent {
    private CountAgent() {}

    private static final class Counted extends MethodVisitor {
        private final String owner;

        Counted(MethodVisitor next, String owner) {
            super(Opcodes.ASM9, next);
            this.owner = owner;
        }

        private void hit(String what, boolean store) {
            super.visitIntInsn(Opcodes.SIPUSH, Counts.number(what, store));
            super.visitMethodInsn(Opcodes.INVOKESTATIC, "Counts", "hit", "(I)V", false);
        }

        @Override
        public void visitFieldInsn(int opcode, String of, String name, String type) {
            hit(of + "." + name, opcode == Opcodes.PUTFIELD || opcode == Opcodes.PUTSTATIC);
            super.visitFieldInsn(opcode, of, name, type);
        }

        @Override
        public void visitInsn(int opcode) {
            if (opcode >= Opcodes.IALOAD && opcode <= Opcodes.SALOAD) {
                hit(owner + ".[]", false);
            } else if (opcode >= Opcodes.IASTORE && opcode <= Opcodes.SASTORE) {
                hit(owner + ".[]", true);
            } else if (opcode == Opcodes.MONITORENTER || opcode == Opcodes.MONITOREXIT) {
                hit(owner + ".monitor", opcode == Opcodes.MONITOREXIT);
            }
            super.visitInsn(opcode);
        }
    }

    private static byte[] counted(byte[] file) {
        ClassReader reader = new ClassReader(file);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(
                new ClassVisitor(Opcodes.ASM9, writer) {
                    @Override
                    public MethodVisitor visitMethod(int access, String name, String type, String sign, String[] thrown) {
                        return new Counted(super.visitMethod(access, name, type, sign, thrown), reader.getClassName());
                    }
                },
                0);
        return writer.toByteArray();
    }

    public static void premain(String prefix, Instrumentation instrumentation) {
        String begin = prefix == null ? "" : prefix;
        instrumentation.addTransformer(
                new ClassFileTransformer() {
                    @Override
                    public byte[] transform(
                            Module module, ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] file) {
                        boolean own = name.startsWith("Count") || name.startsWith("org/objectweb/asm");
                        boolean base = begin.isEmpty() && "java.base".equals(module.getName());
                        if (own || base || !name.startsWith(begin)) {
                            return null;
                        }
                        try {
                            return counted(file);
                        } catch (RuntimeException e) {
                            System.err.println("count_agent: " + name + ": " + e);
                            return null;
                        }
                    }
                });
        Runtime.getRuntime().addShutdownHook(new Thread(Counts::print));
    }
}
