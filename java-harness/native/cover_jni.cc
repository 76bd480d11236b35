// The native half of cover.NativePaths: each function makes one kind of JNI access `times` times.
// Fails by an exception that the JVM has set already, or aborts: the test then sees no DONE.
#include <jni.h>

#include <cstdint>
#include <cstdlib>

namespace {

// One case for each primitive type: LETTER of the signature, NAME in JNI function names, TYPE in C++.
#define FOR_PRIMITIVES(X)   \
  X('Z', Boolean, jboolean) \
  X('B', Byte, jbyte)       \
  X('C', Char, jchar)       \
  X('S', Short, jshort) X('I', Int, jint) X('J', Long, jlong) X('F', Float, jfloat) X('D', Double, jdouble)

jfieldID field_of(JNIEnv* env, jclass holder, jobject target, jchar letter) {
  char signature[2] = {static_cast<char>(letter), 0};
  const char* text = letter == 'O' ? "Ljava/lang/Object;" : signature;
  return target != nullptr ? env->GetFieldID(holder, "v", text) : env->GetStaticFieldID(holder, "s", text);
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_cover_NativePaths_loadField(JNIEnv* env, jclass, jclass holder, jobject target,
                                                        jchar letter, jint times) {
  jfieldID field = field_of(env, holder, target, letter);
  if (field == nullptr) return 0;
  uint32_t sum = 0;
  for (jint i = 0; i < times; i++) {
    switch (letter) {
#define CASE(LETTER, NAME, TYPE)                                                                  \
  case LETTER:                                                                                    \
    sum += static_cast<uint32_t>(target != nullptr ? env->Get##NAME##Field(target, field)         \
                                                   : env->GetStatic##NAME##Field(holder, field)); \
    break;
      FOR_PRIMITIVES(CASE)
#undef CASE
      default: {
        jobject got = target != nullptr ? env->GetObjectField(target, field) : env->GetStaticObjectField(holder, field);
        sum += got == nullptr ? 1u : 0u;
        env->DeleteLocalRef(got);
      }
    }
  }
  return static_cast<jint>(sum);
}

JNIEXPORT void JNICALL Java_cover_NativePaths_storeField(JNIEnv* env, jclass, jclass holder, jobject target,
                                                         jchar letter, jint times) {
  jfieldID field = field_of(env, holder, target, letter);
  if (field == nullptr) return;
  for (jint i = 0; i < times; i++) {
    switch (letter) {
#define CASE(LETTER, NAME, TYPE)                                            \
  case LETTER:                                                              \
    if (target != nullptr)                                                  \
      env->Set##NAME##Field(target, field, static_cast<TYPE>(i & 1));       \
    else                                                                    \
      env->SetStatic##NAME##Field(holder, field, static_cast<TYPE>(i & 1)); \
    break;
      FOR_PRIMITIVES(CASE)
#undef CASE
      default:
        if (target != nullptr)
          env->SetObjectField(target, field, (i & 1) != 0 ? target : nullptr);
        else
          env->SetStaticObjectField(holder, field, (i & 1) != 0 ? holder : nullptr);
    }
  }
}

// Get<Type>ArrayRegion or Set<Type>ArrayRegion.
JNIEXPORT jint JNICALL Java_cover_NativePaths_region(JNIEnv* env, jclass, jobject array, jchar letter, jint from,
                                                     jint length, jboolean store, jint times) {
  void* buffer = std::calloc(static_cast<size_t>(length), 8);
  if (buffer == nullptr) std::abort();
  for (jint i = 0; i < times; i++) {
    switch (letter) {
#define CASE(LETTER, NAME, TYPE)                                                          \
  case LETTER: {                                                                          \
    auto typed = static_cast<TYPE##Array>(array);                                         \
    if (store)                                                                            \
      env->Set##NAME##ArrayRegion(typed, from, length, static_cast<const TYPE*>(buffer)); \
    else                                                                                  \
      env->Get##NAME##ArrayRegion(typed, from, length, static_cast<TYPE*>(buffer));       \
    break;                                                                                \
  }
      FOR_PRIMITIVES(CASE)
#undef CASE
      default: std::abort();
    }
  }
  jint first = *static_cast<const jbyte*>(buffer);
  std::free(buffer);
  return first;
}

// Get<Type>ArrayElements, a change, Release<Type>ArrayElements.
JNIEXPORT void JNICALL Java_cover_NativePaths_elements(JNIEnv* env, jclass, jobject array, jchar letter, jint index,
                                                       jint times) {
  for (jint i = 0; i < times; i++) {
    switch (letter) {
#define CASE(LETTER, NAME, TYPE)                               \
  case LETTER: {                                               \
    auto typed = static_cast<TYPE##Array>(array);              \
    TYPE* all = env->Get##NAME##ArrayElements(typed, nullptr); \
    if (all == nullptr) return;                                \
    all[index] = static_cast<TYPE>(i & 1);                     \
    env->Release##NAME##ArrayElements(typed, all, 0);          \
    break;                                                     \
  }
      FOR_PRIMITIVES(CASE)
#undef CASE
      default: std::abort();
    }
  }
}

// GetPrimitiveArrayCritical, `bytes` of them changed, Release.
JNIEXPORT jint JNICALL Java_cover_NativePaths_critical(JNIEnv* env, jclass, jarray array, jint bytes, jint times) {
  jint sum = 0;
  for (jint i = 0; i < times; i++) {
    auto* all = static_cast<unsigned char*>(env->GetPrimitiveArrayCritical(array, nullptr));
    if (all == nullptr) return 0;
    for (jint k = 0; k < bytes; k++) sum += all[k] = static_cast<unsigned char>(all[k] + 1);
    env->ReleasePrimitiveArrayCritical(array, all, 0);
  }
  return sum;
}

JNIEXPORT jint JNICALL Java_cover_NativePaths_objectElement(JNIEnv* env, jclass, jobjectArray array, jint index,
                                                            jobject value, jboolean store, jint times) {
  jint nulls = 0;
  for (jint i = 0; i < times; i++) {
    if (store) {
      env->SetObjectArrayElement(array, index, value);
      continue;
    }
    jobject got = env->GetObjectArrayElement(array, index);
    nulls += got == nullptr ? 1 : 0;
    env->DeleteLocalRef(got);
  }
  return nulls;
}

// how: 0 GetStringChars, 1 GetStringUTFChars, 2 GetStringRegion, 3 GetStringUTFRegion, 4 GetStringCritical.
JNIEXPORT jint JNICALL Java_cover_NativePaths_string(JNIEnv* env, jclass, jstring string, jint how, jint times) {
  jint sum = 0;
  jsize length = env->GetStringLength(string);
  void* buffer = std::calloc(static_cast<size_t>(length) + 1, 4);
  if (buffer == nullptr) std::abort();
  for (jint i = 0; i < times; i++) {
    if (how == 0) {
      const jchar* chars = env->GetStringChars(string, nullptr);
      sum += chars[length - 1];
      env->ReleaseStringChars(string, chars);
    } else if (how == 1) {
      const char* chars = env->GetStringUTFChars(string, nullptr);
      sum += chars[length - 1];
      env->ReleaseStringUTFChars(string, chars);
    } else if (how == 2) {
      env->GetStringRegion(string, 0, length, static_cast<jchar*>(buffer));
      sum += static_cast<jchar*>(buffer)[length - 1];
    } else if (how == 3) {
      env->GetStringUTFRegion(string, 0, length, static_cast<char*>(buffer));
      sum += static_cast<char*>(buffer)[length - 1];
    } else {
      const jchar* chars = env->GetStringCritical(string, nullptr);
      sum += chars[length - 1];
      env->ReleaseStringCritical(string, chars);
    }
  }
  std::free(buffer);
  return sum;
}

}  // extern "C"
